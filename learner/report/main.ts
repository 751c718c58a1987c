/** `longrun report`. Exit status: 0 done, 1 failed, 2 bad input. */
import { resolve } from "node:path";
import { endOnClosedPipe } from "../../proto/closed-pipe.ts";
import { asksForHelp, helpOf } from "../../proto/command-help.ts";
import { parse } from "../../proto/command-line.ts";
import { writeReport } from "./write.ts";

export const REPORT = {
  name: "longrun report",
  description: "write the report of a run folder: RUN/report.html, anew. Prints its path",
  arguments: { "<RUN>": "run folder" },
  options: {},
  examples: ["longrun report runs/short"],
} as const;

if (import.meta.main) {
  endOnClosedPipe();
  const args = process.argv.slice(2);
  try {
    if (asksForHelp(args)) process.stdout.write(helpOf(REPORT));
    else process.stdout.write(`${await writeReport(resolve(parse(REPORT, args).words[0]!))}\n`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    process.stderr.write(`${message}\n`);
    process.exitCode = code === "write" || !code ? 1 : 2;
  }
}
