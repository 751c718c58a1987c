/** The part of `longrun validate` that needs the learner: lengths, and the task folder as a run opens it. */

import { policyFolder } from "../../crds/policy.ts";
import { parseResolved, type TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Values } from "../../proto/command-line.ts";
import { checkLengths, readConfig, readTokenizer, turnEndWarning } from "../engine/index.ts";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { checkInstrumenter } from "../rollout/instrument-policy.ts";
import { promptEncoder } from "../rollout/prompt-encoder.ts";
import { scratchPrompt } from "../rollout/prompts.ts";
import { packagesOf, readPromptTask } from "../rollout/snippet.ts";
import { openTasks } from "../tasks/tasks.ts";
import { printLine, readText, runCommand } from "./command.ts";

const VALIDATE = {
  name: "validate-command.ts",
  description: `Checks a resolved TrainingRun with absolute paths as a learner does before it loads weights. Prints {"warnings": [...]} if the
learner would start.`,
  options: {
    "manifest <FILE>": { help: "resolved manifest", required: "a resolved manifest" },
    "task <TASK=DIR...>": "folder of one of its tasks; the others are not looked at",
  },
} as const;

function validate({ manifest: path, task: given }: Values<typeof VALIDATE.options>): void {
  const { spec } = parseResolved(readText(path), path);
  // A model that is fetched when the run starts (`model.source`) is not here yet: its tokens are estimated.
  const policy = spec.model.policy === undefined ? undefined : policyFolder(spec.model.policy, path, process.cwd());
  const warnings: string[] = [];
  if (policy !== undefined) {
    const cut = turnEndWarning(policy);
    if (cut !== undefined) warnings.push(cut);
    const { maxPositions } = readConfig(policy);
    checkLengths(spec.model, maxPositions);
    checkInstrumenter(spec.model, maxPositions);
  }
  const folders = new Map(given.map((text) => text.split(/=(.*)/s, 2) as [string, string]));
  const tasks = spec.tasks.filter(({ name }) => folders.has(name));
  const directories = tasks.map(({ name }) => folders.get(name)!);
  for (const task of openTasks(directories, { ...spec, tasks: tasks as TrainingRunSpec["tasks"] }).all) {
    const tokenizer = policy === undefined ? undefined : readTokenizer(policy);
    const { style } = spec.prompts;
    const { maxPromptTokens } = spec.model;
    const shown = readPromptTask(task, spec.prompts.dataSnippetRows, packagesOf(spec));
    scratchPrompt(shown, {
      style,
      maxPromptTokens,
      encode: promptEncoder(
        tokenizer ? (messages, prefix) => tokenizer.encodeChat(messages, prefix) : estimateChat,
        spec.prompts,
      ),
    });
  }
  printLine({ warnings });
}

await runCommand(VALIDATE, validate);
