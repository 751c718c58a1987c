/** Exit status: 0 done, 1 failed, 2 bad input. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { endOnClosedPipe } from "../../proto/closed-pipe.ts";
import { ReportError } from "./run-folder.ts";
import { writeReport } from "./write.ts";

const USAGE =
  "Usage: longrun report DIR, where DIR is the folder of a run; writes DIR/report.html anew and prints its path";

endOnClosedPipe();
try {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { help: { type: "boolean" } } });
  const [directory] = positionals;
  if (!values.help && (directory === undefined || positionals.length > 1)) throw new ReportError("arguments", USAGE);
  process.stdout.write(`${values.help ? USAGE : await writeReport(resolve(directory!))}\n`);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  process.stderr.write(`${message}\n`);
  process.exitCode = code === "write" || !code ? 1 : 2;
}
