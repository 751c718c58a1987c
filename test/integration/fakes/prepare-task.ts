/** A fake of learner/tasks/prepare.ts for tests of the command line: makes an empty task folder, or fails on request. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { task: { type: "string" }, out: { type: "string" }, python: { type: "string" } },
});
if (values.task === "unknown") {
  process.stderr.write('prepare: --task: no bundled task "unknown"; there are diamonds\n');
  process.exit(2);
}
const directory = join(values.out!, values.task!);
mkdirSync(join(directory, "prepared", "private"), { recursive: true });
writeFileSync(join(directory, "task.yaml"), `name: ${values.task}\n`);
writeFileSync(join(directory, "prepared", "private", "answers.csv"), "id,price\n");
process.stdout.write(`${JSON.stringify({ task: values.task, directory, created: true })}\n`);
