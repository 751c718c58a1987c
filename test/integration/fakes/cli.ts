/** `longrun` with fakes in place of the other parts' programs. */
import { fileURLToPath } from "node:url";
import { main } from "../../../controller/cli.ts";
import { PARTS } from "../../../controller/parts.ts";

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

process.exitCode = await main(process.argv, {
  ...PARTS,
  learner: file("learner.ts"),
  actor: file("actor.ts"),
  prepareTask: file("prepare-task.ts"),
  pythonEnvironment: file("python-environment.ts"),
});
