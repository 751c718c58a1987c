/** Writes the tables of the learner's commands for `longrun`, which starts these commands as processes and imports none of them. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Command } from "../proto/command-line.ts";
import { GENERATE } from "./commands/generate-command.ts";
import { GRADE } from "./commands/grade-command.ts";
import { LOGPROBS } from "./commands/logprobs-command.ts";
import { MODEL } from "./commands/model-options.ts";
import { PRETRAIN } from "./commands/pretrain-command.ts";
import { RESULTS } from "./commands/results-command.ts";
import { SERVE } from "./commands/serve-options.ts";
import { SFT } from "./commands/sft-options.ts";
import { TASK } from "./commands/task-command.ts";
import { COMPARE } from "./report/compare-command.ts";
import { REPORT } from "./report/main.ts";

const TABLES: Command[] = [GRADE, TASK, REPORT, PRETRAIN, SFT, LOGPROBS, GENERATE, MODEL, RESULTS, SERVE, COMPARE];
const FILE = fileURLToPath(new URL("../controller/cli/part-commands.generated.json", import.meta.url));

const text = `${JSON.stringify(TABLES, null, 1)}\n`;
if (!process.argv.includes("--check")) writeFileSync(FILE, text);
else if (readFileSync(FILE, "utf8") !== text) {
  process.stderr.write(`not up to date: ${FILE}; run: npm run generate\n`);
  process.exitCode = 1;
}
