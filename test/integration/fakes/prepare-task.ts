/** A fake of learner/tasks/prepare.ts for tests of the command line: makes a task folder without rows, or fails on request. */
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
const grader = "{ metric: MAE, idColumn: id, targetColumns: [price], direction: Lower }";
for (const part of ["private", "public"]) mkdirSync(join(directory, "prepared", part), { recursive: true });
for (const file of ["train.csv", "sample_submission.csv", "description.md"])
  writeFileSync(join(directory, "prepared", "public", file), "id,price\n");
writeFileSync(join(directory, "task.yaml"), `name: ${values.task}\ngrader: ${grader}\n`);
writeFileSync(join(directory, "prepared", "private", "answers.csv"), "id,price\n");
process.stdout.write(`${JSON.stringify({ task: values.task, directory, created: true })}\n`);
