/**
 * The command line `longrun`; `cli/commands.ts` has its commands.
 *
 * Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted. A command of another part (learner, actor) starts that part's
 * program as a process (`parts.ts`).
 */
import { readFileSync } from "node:fs";
import { endOnClosedPipe } from "../proto/closed-pipe.ts";
import { commandsOf } from "./cli/commands.ts";
import { dispatch } from "./dispatch.ts";
import { PARTS, type Parts } from "./parts.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** @returns the exit status */
export function main(argv: string[], parts: Parts = PARTS): Promise<number> {
  const program = {
    name: "longrun",
    description: "Trains machine-learning-engineering agents by reinforcement learning.",
    version,
    commands: commandsOf(parts),
  };
  return dispatch(program, argv.slice(2), process.stdout, process.stderr);
}

if (import.meta.main) {
  endOnClosedPipe();
  process.exitCode = await main(process.argv);
}
