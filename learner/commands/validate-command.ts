/** The part of `longrun validate` that needs the learner: lengths, and the task folder as a run opens it (`USAGE`). */
import { parseArgs } from "node:util";
import { policyFolder } from "../../crds/policy.ts";
import { ManifestError, parseResolved } from "../../crds/trainingrun.ts";
import { checkLengths, readConfig, readTokenizer } from "../engine/index.ts";
import { rewardOrderFault } from "../grading/reward.ts";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { checkInstrumenter } from "../rollout/instrument-policy.ts";
import { scratchPrompt } from "../rollout/prompts.ts";
import { packagesOf, readPromptTask } from "../rollout/snippet.ts";
import { openTask } from "../tasks/task.ts";
import { printLine, readText, required, runCommand } from "./command.ts";

const USAGE = `node learner/commands/validate-command.ts --manifest FILE [--task-dir DIR]
    Checks a resolved TrainingRun with absolute paths as a learner does before it loads weights. --task-dir is the
    task folder; without it the task is not looked at. Prints {} if the learner would start.`;

const options = { manifest: { type: "string" }, "task-dir": { type: "string" } } as const;

function validate(): void {
  const { values } = parseArgs({ options });
  const path = required(values.manifest, "--manifest", "a resolved manifest");
  const { spec } = parseResolved(readText(path), path);
  // A model that is fetched when the run starts (`model.source`) is not here yet: its tokens are estimated.
  const policy = spec.model.policy === undefined ? undefined : policyFolder(spec.model.policy, path, process.cwd());
  if (policy !== undefined) {
    const { maxPositions } = readConfig(policy);
    checkLengths(spec.model, maxPositions);
    checkInstrumenter(spec.model, maxPositions);
  }
  const directory = values["task-dir"];
  if (directory !== undefined) {
    const task = openTask(directory, spec.tasks[0]);
    const fault = rewardOrderFault(spec.algorithm, task.grader);
    if (fault !== undefined) throw new ManifestError([fault]);
    const tokenizer = policy === undefined ? undefined : readTokenizer(policy);
    const { style } = spec.prompts;
    const { maxPromptTokens } = spec.model;
    const shown = readPromptTask(task, spec.prompts.dataSnippetRows, packagesOf(spec));
    scratchPrompt(shown, {
      ...{ style, maxPromptTokens },
      encode: tokenizer ? (messages) => tokenizer.encodeChat(messages) : estimateChat,
    });
  }
  printLine({});
}

await runCommand(USAGE, validate);
