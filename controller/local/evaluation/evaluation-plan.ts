/** Turns the options of `longrun evaluate` into a TrainingRun and the weights that are evaluated on its task. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { stringify } from "yaml";
import { parseResolved, parseTrainingRun, type Task, type TrainingRun } from "../../../crds/trainingrun.ts";
import { ControllerError } from "../../errors.ts";
import { sourceName } from "../../operator/parts/inputs/model.ts";
import { readInput } from "../../read-input.ts";
import { readTask } from "../exec.ts";
import { resolveForThisMachine } from "../inputs/resolve.ts";
import { knownPrompts, policyOf, taskOfFolder } from "../inputs/task-manifest.ts";
import type { EvaluateOptions } from "../options.ts";
import { MANIFEST, refuseLiving } from "../run-folder.ts";

export type EvaluationRequest = Pick<
  EvaluateOptions,
  "run" | "model" | "task" | "samples" | "improve" | "protocol" | "seed" | "out" | "set"
>;

/** Weights that are evaluated; `policies.json` of the folder. */
export interface EvaluatedPolicy {
  /** Finished iterations of its training. */
  iteration: number;
  /** Folder; absent: the weights of the model folder. */
  checkpoint?: string;
}

export interface EvaluationPlan {
  run: TrainingRun;
  policies: { before?: EvaluatedPolicy; after?: EvaluatedPolicy; model?: EvaluatedPolicy };
  directory: string;
  /** Folder of the run that trained the policy. */
  trained?: string;
}

const MOST_SAMPLES = 65_536;
const input = (message: string, cause?: unknown) => new ControllerError("input", message, { cause });

/** Refuses what is wrong whatever the task is. @throws ControllerError `input` */
export function refuseRequest(file: string | undefined, request: EvaluationRequest): void {
  checkCombination(file, request);
  evaluationOverrides(request);
  if (request.model !== undefined) policyOf(request.model);
}

/** @throws ManifestError | ControllerError `input`, one line a problem */
export function planEvaluation(file: string | undefined, request: EvaluationRequest): EvaluationPlan {
  checkCombination(file, request);
  const overrides = [...request.set, ...evaluationOverrides(request)];
  const { run, start } = runOfPolicy(baseOf(file, request), request, overrides);
  if (request.run === undefined) {
    const { policy, source } = run.spec.model;
    const model = policy ?? source!.huggingFace?.repo ?? sourceName(source!);
    const name = `${basename(model)}-${run.spec.tasks.map(({ name }) => name).join("-")}`;
    return { run, policies: { model: start }, directory: resolve(request.out ?? join("evaluations", name)) };
  }
  const trained = resolve(request.run);
  return {
    run,
    policies: { before: start, after: newestCheckpoint(trained) },
    directory: resolve(request.out ?? join(trained, "evaluation")),
    trained,
  };
}

/**
 * Returns a TrainingRun that trains nothing: the base's, with the requested model and task.
 *
 * @param overrides take precedence over the base
 * @returns `start`: the weights that the base's run began with
 */
export function runOfPolicy(
  { text, source, directory }: ReturnType<typeof baseOf>,
  { run: trained, model, task }: Pick<EvaluationRequest, "run" | "model" | "task">,
  overrides: readonly string[],
): { run: TrainingRun; start: EvaluatedPolicy } {
  const parsed = (trained === undefined ? parseTrainingRun : parseResolved)(text, source, [...overrides]);
  if (model !== undefined) {
    parsed.spec.model.policy = policyOf(model);
    delete parsed.spec.model.source;
  }
  if (task !== undefined) parsed.spec.tasks = [taskOf(task, parsed.spec.tasks)];
  const { initFrom } = parsed.spec;
  // its data may be gone
  delete parsed.spec.warmStart;
  delete parsed.spec.runtimeRef; // of a cluster
  const run = resolveForThisMachine(parsed, source, directory);
  // the caller names the weights that are used
  delete run.spec.initFrom;
  return { run, start: { iteration: 0, ...(initFrom?.path && { checkpoint: resolve(directory, initFrom.path) }) } };
}

function checkCombination(file: string | undefined, { run, model, task }: EvaluationRequest): void {
  if (run !== undefined && (model !== undefined || file !== undefined))
    throw input("--run evaluates the policy of that run with its own settings; leave out the manifest and --model");
  if (run === undefined && file === undefined && (model === undefined || task === undefined))
    throw input(
      model === undefined
        ? "nothing to evaluate; give --run DIR, or --model MODEL and --task TASK"
        : `--model ${model}: on which task? give --task TASK, a prepared task folder or the name of a bundled task`,
    );
}

function evaluationOverrides({ samples, improve, protocol, seed }: EvaluationRequest): string[] {
  const count = wholeNumber("--samples", samples, 1, MOST_SAMPLES);
  if (protocol === "equal" && count % 2 === 1)
    throw input(`--samples ${samples}: protocol equal gives each kind of prompt half of them; give an even number`);
  const asked = {
    samples: count,
    improve: improve || protocol !== undefined,
    protocol: protocol === "equal" ? "Equal" : "Paper",
  };
  const seeds = seed === undefined ? [] : [`seed=${wholeNumber("--seed", seed, 0, Number.MAX_SAFE_INTEGER)}`];
  return [...seeds, `evaluation=${JSON.stringify(asked)}`];
}

export function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isInteger(value) && value >= least && value <= most) return value;
  throw input(`${option} ${text}: give a whole number from ${least} to ${most}`);
}

/** Finds the manifest with the settings. @returns its text, its name in errors, and the folder of its relative paths */
export function baseOf(
  file: string | undefined,
  { run, model, task }: Pick<EvaluationRequest, "run" | "model" | "task">,
  command = "longrun evaluate",
) {
  if (run !== undefined) {
    refuseLiving(run);
    const source = join(run, MANIFEST);
    return { text: readInput(source, `--run ${run}: this is no run folder: `), source, directory: resolve(run) };
  }
  if (file !== undefined) return { text: readInput(file), source: file, directory: resolve(dirname(file)) };
  const policy = policyOf(model!);
  const manifest = {
    apiVersion: "longrun.dev/v1alpha1",
    kind: "TrainingRun",
    metadata: { name: "evaluation" },
    spec: { tasks: [readTask(resolve(task!), task!)], model: { policy }, ...knownPrompts(policy) },
  };
  return { text: stringify(manifest), source: command, directory: process.cwd() };
}

/** Keeps the manifest's limits for its own task, and takes another task's limits from its folder. */
function taskOf(directory: string, known: readonly Task[]): Task {
  const own = taskOfFolder(directory);
  const limits = known.find(({ name }) => name === own.name) ?? own;
  const grader = own.grader ?? limits.grader;
  const { publicData, privateData } = own;
  return { ...limits, ...(grader && { grader }), publicData, privateData };
}

/** Folders are called `<lineage>-<iteration>`; a newer lineage continued from an older one. */
export function newestCheckpoint(run: string): EvaluatedPolicy {
  const folder = join(run, "checkpoints");
  const found = (existsSync(folder) ? readdirSync(folder) : [])
    .map((name) => /^(\d+)-(\d+)$/.exec(name))
    .filter((match) => match !== null)
    .map(([name, lineage, iteration]) => ({ name, lineage: Number(lineage), iteration: Number(iteration) }))
    .sort((a, b) => b.lineage - a.lineage || b.iteration - a.iteration);
  const [newest] = found;
  if (!newest)
    throw input(`--run ${run}: there is no checkpoint in it; continue the run, or evaluate its policy with --model`);
  return { iteration: newest.iteration, checkpoint: join(folder, newest.name) };
}
