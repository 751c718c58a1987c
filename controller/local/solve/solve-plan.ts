/** Turns the options of `longrun solve` into a TrainingRun, whose task and limits are used, and the settings of the search. */
import { basename, join, resolve } from "node:path";
import { stringify } from "yaml";
import type { TrainingRun } from "../../../crds/trainingrun.ts";
import { parseBudget, type SearchRules, SOLVE_FILE, type SolveSettings } from "../../../proto/solve.ts";
import { ControllerError } from "../../errors.ts";
import { baseOf, newestCheckpoint, runOfPolicy, wholeNumber } from "../evaluation/evaluation-plan.ts";
import { readTask } from "../exec.ts";
import { policyOf } from "../inputs/task-manifest.ts";
import type { LocalOptions, SolveOptions } from "../options.ts";
import { usableCores } from "../processes/cpus.ts";
import type { Work } from "../work-folder.ts";
import { endpointOf, refuseEndpointOptions } from "./endpoint-options.ts";

export type SolveRequest = Omit<SolveOptions, Exclude<keyof LocalOptions, "set">>;

export interface SolvePlan {
  run: TrainingRun;
  settings: SolveSettings;
  directory: string;
}

/** Settings that may change when a search continues: no score depends on them. Without --concurrency its value follows the slots. */
const FREE_SETTINGS = ["budget", "slots", "endpoint.concurrency", "endpoint.prices"];

/** Limits that an endpoint may refuse in the middle of a search; its same prompt would be refused again and again. */
const LIMITS_OF_ENDPOINT = ["model.maxPromptTokens", "model.maxResponseTokens"];

/** Most programs side by side, and most of any other count. */
const MOST = 65_536;
/**
 * Limits of requests to an endpoint: bytes of a prompt, and tokens of an answer. The manifest's policy is not used: its schema asks for one.
 */
const OF_ENDPOINT = { policy: "quickstart", maxPromptTokens: 100_000, maxResponseTokens: 8192 };

const input = (message: string) => new ControllerError("input", message);

/** Refuses what is wrong whatever the task is. @throws ControllerError `input`, one line */
export function refuseSolveRequest(request: SolveRequest, env: NodeJS.ProcessEnv): void {
  const { run, model, endpoint, task, budget } = request;
  const given = Object.entries({ "--run": run, "--model": model, "--endpoint": endpoint }).filter(([, value]) => value);
  if (given.length === 0)
    throw input("nothing writes solutions; give --model MODEL, --run RUN, or --endpoint URL with --model-name NAME");
  if (given.length > 1) throw input(`${given.map(([name]) => name).join(" and ")}: give one of them alone`);
  if (task === undefined && run === undefined)
    throw input("--task is missing; give a prepared task folder or the name of a bundled task");
  if (model !== undefined) policyOf(model);
  const parsed = parseBudget(budget);
  if (parsed === undefined)
    throw input(
      `--budget ${budget}: give a time (s, m, h, d), executions or tokens, each once, e.g. 30m or "2h,50 executions"`,
    );
  if (parsed.tokens !== undefined && endpoint === undefined)
    throw input(`--budget ${budget}: tokens are counted for an --endpoint alone; give a time or executions`);
  rulesOf(request);
  if (endpoint === undefined) refuseEndpointOptions(request);
  else endpointOf(request, 1, env);
}

/** @param request its task is a folder @throws ManifestError | ControllerError `input`, one line a problem */
export function planSolve(request: SolveRequest, env: NodeJS.ProcessEnv): SolvePlan {
  refuseSolveRequest(request, env);
  const { run: trained, model, task, endpoint } = request;
  const seeds =
    request.seed === undefined ? [] : [`seed=${wholeNumber("--seed", request.seed, 0, Number.MAX_SAFE_INTEGER)}`];
  const overrides = [...actorsOf(request), ...request.set, ...seeds];
  const base =
    endpoint === undefined ? baseOf(undefined, { run: trained, model, task }, "longrun solve") : ownBase(task!);
  const { run } = runOfPolicy(base, { run: trained, model, task }, overrides);
  if (trained === undefined) run.metadata.name = "solve";
  const [only, ...others] = run.spec.tasks;
  if (others.length > 0)
    throw input(
      `--run ${trained}: has several tasks; name one with --task: ${run.spec.tasks.map(({ name }) => name).join(", ")}`,
    );
  const slots = run.spec.actors.slots * run.spec.actors.max;
  const writer = endpoint
    ? { endpoint: endpointOf(request, slots, env) }
    : { policy: trained === undefined ? { iteration: 0 } : newestCheckpoint(resolve(trained)) };
  if (endpoint && run.spec.model.instrumenter === "StaticPolicy")
    throw input("model.instrumenter is StaticPolicy, and with --endpoint there is no static policy; set it to Syntax");
  const settings = { ...rulesOf(request), budget: parseBudget(request.budget)!, slots, ...writer };
  const name = `${nameOf(request)}-${only!.name}-${request.search}`;
  return { run, settings, directory: resolve(request.out ?? join("solutions", name)) };
}

function rulesOf({ search, drafts, debugProbability, debugDepth, exploration }: SolveRequest): SearchRules {
  return {
    search,
    drafts: wholeNumber("--drafts", drafts, 1, MOST),
    debugProbability: numberOf("--debug-probability", debugProbability, 0, 1),
    debugDepth: wholeNumber("--debug-depth", debugDepth, 0, MOST),
    exploration: numberOf("--exploration", exploration, 0, 1000),
  };
}

function numberOf(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= least && value <= most) return value;
  throw input(`${option} ${text}: give a number from ${least} to ${most}`);
}

/** One actor, with as many slots as asked for; a run keeps its own actors. */
function actorsOf({ slots, run, endpoint }: SolveRequest): string[] {
  if (slots === undefined && run !== undefined) return [];
  const free = Math.max(1, usableCores().length - (endpoint === undefined ? 1 : 0));
  const count = slots === undefined ? free : wholeNumber("--slots", slots, 1, MOST);
  return ["actors.min=1", "actors.max=1", `actors.slots=${count}`];
}

/** Returns a manifest of the task, for an endpoint. */
function ownBase(task: string): ReturnType<typeof baseOf> {
  const manifest = {
    apiVersion: "longrun.dev/v1alpha1",
    kind: "TrainingRun",
    metadata: { name: "solve" },
    spec: { tasks: [readTask(resolve(task), task)], model: OF_ENDPOINT },
  };
  return { text: stringify(manifest), source: "longrun solve", directory: process.cwd() };
}

/** Returns the model's name as part of a folder's. */
const nameOf = ({ run, model, modelName }: SolveRequest): string =>
  basename(resolve(run ?? model ?? modelName!)).replace(/[^\w.-]+/g, "-");

/** Returns the search as work in a folder. */
export const workOf = ({ run, settings }: SolvePlan): Work => ({
  run,
  file: SOLVE_FILE,
  settings,
  free: FREE_SETTINGS,
  what: "a search",
  fields: ["seed", "tasks", "model", "prompts"],
  ...(settings.endpoint && { freeFields: LIMITS_OF_ENDPOINT }),
});
