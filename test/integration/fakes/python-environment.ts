/** A fake of actor/python-env.ts for tests of the command line: takes FAKE_PYTHON_SECONDS, or fails on request. */
import { setTimeout as sleep } from "node:timers/promises";

if (process.argv.includes("no-venv")) {
  process.stderr.write("no-venv has no venv module: install it with apt-get install python3-venv\n");
  process.exit(1);
}
const set = process.argv.indexOf("--packages");
if (set !== -1) {
  process.stderr.write(`there are no wheels of ${process.argv[set + 1]} for this machine\n`);
  process.exit(1);
}
process.stderr.write("installing packages\n");
await sleep(Number(process.env.FAKE_PYTHON_SECONDS ?? 0) * 1000);
process.stdout.write(
  `${JSON.stringify({ directory: "/fake", python: "/fake/bin/python", digest: "fake", created: true })}\n`,
);
