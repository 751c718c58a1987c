import { fileURLToPath } from "node:url";
import { PARTS, type Parts } from "../../../controller/parts.ts";

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** The other parts' programs, with fakes if there are any. */
export const FAKES: Parts = {
  ...PARTS,
  learner: file("learner.ts"),
  actor: file("actor.ts"),
  prepareTask: file("prepare-task.ts"),
  pythonEnvironment: file("python-environment.ts"),
};
