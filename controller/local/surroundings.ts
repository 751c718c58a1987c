import type { Parts } from "../parts.ts";
import type { Screen } from "./terminal.ts";

/** What a command of this machine has of the process that runs it. */
export interface Surroundings {
  parts: Parts;
  stdout: Screen;
  stderr: Screen;
  env: NodeJS.ProcessEnv;
  now: () => Date;
}
