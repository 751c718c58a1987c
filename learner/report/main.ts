/** `longrun report DIR`: writes DIR/report.html and prints its path. Exit codes: 0 done, 1 failed, 2 bad input. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { ReportError } from "./errors.ts";
import { writeReport } from "./write.ts";

try {
  const { positionals } = parseArgs({ allowPositionals: true, options: {} });
  const [directory] = positionals;
  if (directory === undefined || positionals.length > 1) {
    throw new ReportError("arguments", "usage: longrun report DIR, where DIR is the folder of a run");
  }
  process.stdout.write(`${await writeReport(resolve(directory))}\n`);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  process.stderr.write(`${message}\n`);
  process.exitCode = code === "write" || code === "render" || !code ? 1 : 2;
}
