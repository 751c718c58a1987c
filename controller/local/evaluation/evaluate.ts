/** `longrun evaluate`: measures a policy with the learner and actors of `longrun run`, without training. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ControllerError, EXIT } from "../../errors.ts";
import { harmless } from "../../harmless.ts";
import { runPart } from "../../part-process.ts";
import { fetchPolicy } from "../inputs/fetch-model.ts";
import { taskFolder } from "../inputs/prepare.ts";
import { tasksText } from "../inputs/task-manifest.ts";
import { checkAddresses, type LocalCommand, prepare, runLocalCommand, startBackend } from "../local-command.ts";
import type { EvaluateOptions } from "../options.ts";
import { releaseRunFolder } from "../run-folder.ts";
import type { Surroundings } from "../surroundings.ts";
import { readSummary } from "../terminal/summary.ts";
import { createEvaluationFolder, openEvaluationFolder } from "./evaluation-folder.ts";
import { planEvaluation, refuseRequest } from "./evaluation-plan.ts";

/**
 * Evaluates, or continues an interrupted evaluation from the results in its folder.
 *
 * @param file manifest whose settings are used; `--run`, `--model` and `--task` take precedence
 * @returns the exit status
 * @throws ManifestError | ControllerError; no process is left behind, and no folder when the input was bad
 */
export async function evaluateLocally(
  file: string | undefined,
  options: EvaluateOptions,
  around: Surroundings,
): Promise<number> {
  return runLocalCommand(options, around, async (local) => {
    refuseRequest(file, options); // before a bundled task is prepared, because that takes time
    const task = options.task && (await taskFolder(options.task, options.python, local.steps));
    const plan = planEvaluation(file, { ...options, task });
    const { run, directory, policies, trained } = plan;
    await checkAddresses(local);
    await fetchPolicy(run, local.steps);
    const state = openEvaluationFolder(directory, plan);
    if (state === "begun") local.atEnd(() => releaseRunFolder(directory));
    if (state === "done") {
      local.terminal.line(`Evaluated before: ${directory}`);
      showEvaluation(local, directory);
      return EXIT.done;
    }
    const prepared = await prepare(local, run);
    if (state === "new") createEvaluationFolder(directory, plan);
    const { after } = policies;
    const what = after ? `${run.metadata.name}, before and after iteration ${after.iteration},` : run.spec.model.policy;
    const verb = state === "new" ? "Evaluating" : "Going on to evaluate";
    local.terminal.line(`${verb} ${what} on ${tasksText(run)} in ${directory}`);
    const status = await startBackend(local, prepared, {
      run,
      directory,
      json: false,
      isNew: state === "new",
      learnerArguments: [],
      showEnd: () => showEvaluation(local, directory),
      goOn: `the same command; finished work is kept in ${directory}`,
    });
    if (status === EXIT.done && trained !== undefined) await renewReport(local, trained);
    return status;
  });
}

/** Prints the table, or all numbers as one object. */
function showEvaluation({ terminal, options, around }: LocalCommand, directory: string): void {
  const { evaluation } = (readSummary(directory) ?? {}) as { evaluation?: object };
  if (!evaluation) throw new ControllerError("failed", `${directory}: the evaluation left no summary.json`);
  if (options.json) {
    around.stdout.write(`${JSON.stringify({ directory, ...evaluation })}\n`);
    return;
  }
  terminal.line("");
  const lines = readFileSync(join(directory, "evaluation.md"), "utf8").trimEnd().split("\n");
  // With one task the heading adds no information.
  for (const line of "tasks" in evaluation ? lines : lines.slice(2)) terminal.line(line);
  terminal.line("");
  terminal.line(`Report: ${join(directory, "report.html")}`);
}

/** Writes the report of the run that trained the policy again, because it also shows the evaluation. */
async function renewReport({ around, terminal }: LocalCommand, trained: string): Promise<void> {
  const { exitStatus, stderr } = await runPart(around.parts.report, [trained], { env: around.env });
  if (exitStatus !== 0) around.stderr.write(harmless(`the report of ${trained} was not renewed: ${stderr.trim()}\n`));
  else terminal.line(`Report of the run: ${join(trained, "report.html")}`);
}
