import type { Parts } from "../parts.ts";
import type { Screen } from "./terminal/terminal.ts";

/** The process environment of a local command. */
export interface Surroundings {
  parts: Parts;
  stdout: Screen;
  stderr: Screen;
  env: NodeJS.ProcessEnv;
  now: () => Date;
}
