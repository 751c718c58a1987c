/** The plugin's commands that change or create a run: pause, resume, evaluate. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EvaluatedPolicyStatus } from "../../crds/trainingrun.ts";
import { ControllerError } from "../errors.ts";
import type { Run } from "../operator/desired/names.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { TRAINING_RUN } from "../operator/kube/resources.ts";
import { findCondition } from "../operator/status/conditions.ts";
import { type Cluster, readRun } from "./cluster.ts";
import { isOver, statusLines } from "./status.ts";

const POLL_SECONDS = 2;

interface ChangeOptions {
  /** Whether to wait until the change is done; false: return at once. */
  wait: boolean;
  timeoutSeconds: number;
  say: (line: string) => void;
}

/** @throws ControllerError */
export async function setSuspended(
  cluster: Cluster,
  name: string,
  suspend: boolean,
  options: ChangeOptions,
): Promise<void> {
  const { client, namespace } = cluster;
  const { wait, say } = options;
  let run = await readRun(cluster, name);
  const { uid } = run.metadata;
  const failed = !suspend && run.status?.phase === "Failed";
  if (isOver(run) && !failed) throw new ControllerError("input", `${name} is over: ${run.status?.phase}`);
  if (failed) {
    // The controller must see the suspension first: a failed run can be resumed only after it was suspended.
    say(`${name} has failed: ${findCondition(run.status?.conditions, "Succeeded")?.message ?? ""}`);
    await refusals(
      client.mergePatch(TRAINING_RUN, { namespace, name }, { metadata: { uid }, spec: { suspend: true } }),
    );
    run = await until(cluster, name, options, (it) => (it.status?.phase === "Suspended" ? it : undefined));
  }
  if ((run.spec.suspend ?? false) === suspend)
    say(`${name} ${suspend ? "is asked to pause" : "is not paused"} already`);
  else {
    await refusals(client.mergePatch(TRAINING_RUN, { namespace, name }, { metadata: { uid }, spec: { suspend } }));
    say(
      suspend
        ? `${name} pauses: programs that run may finish, then a checkpoint is written`
        : `${name} continues from its newest checkpoint`,
    );
  }
  if (!wait) return;
  const done = await until(cluster, name, options, (it) => {
    if (isOver(it)) return it;
    const { status, message } = findCondition(it.status?.conditions, suspend ? "Suspended" : "LearnerAvailable") ?? {};
    return status === "True" ? { ...it, message } : undefined;
  });
  say(findCondition(done.status?.conditions, suspend ? "Suspended" : "LearnerAvailable")?.message ?? "");
}

export interface EvaluateOptions extends Omit<ChangeOptions, "wait"> {
  /** Name of the TrainingRun that evaluates. */
  as: string;
  /** Programs from scratch; undefined: as the run's own evaluations. */
  samples: number | undefined;
  /** Whether the TrainingRun stays after the evaluation. */
  keep: boolean;
}

/**
 * Evaluates the newest checkpoint of a run on the cluster. It creates another TrainingRun that starts from the checkpoint, and deletes it
 * after its first evaluation, before it trains.
 *
 * @returns the evaluation; with several tasks the evaluation of each, by name
 * @throws ControllerError
 */
export async function evaluate(
  cluster: Cluster,
  name: string,
  options: EvaluateOptions,
): Promise<EvaluatedPolicyStatus | Record<string, EvaluatedPolicyStatus>> {
  const { client, namespace } = cluster;
  const { as, say, keep } = options;
  const made = await refusals(
    client.create(TRAINING_RUN, evaluationRun(await readRun(cluster, name), as, options.samples)),
  );
  say(`TrainingRun ${as} evaluates the newest checkpoint of ${name}`);
  let last = "";
  let ended = false;
  try {
    const run = await until(cluster, as, options, (it) => {
      const now = statusLines(it, Date.now()).at(-1) ?? "";
      if (now !== last) say(now);
      last = now;
      return evaluatedBefore(it) || isOver(it) ? it : undefined;
    });
    ended = true;
    const before = evaluatedBefore(run);
    if (before) return before;
    throw new ControllerError("failed", `${as}: ${findCondition(run.status!.conditions, "Succeeded")?.message}`);
  } finally {
    if (ended && !keep)
      await client.delete(TRAINING_RUN, { namespace, name: as }, { uid: made.metadata.uid! }).catch(() => {});
    else if (!keep) say(`TrainingRun ${as} stays: kubectl delete trainingrun ${as} -n ${namespace}`);
  }
}

function evaluatedBefore({ spec, status }: Run) {
  if (spec.tasks.length === 1) return status?.evaluation?.before;
  const tasks = (status?.tasks ?? []).flatMap(({ name, evaluation }) =>
    evaluation?.before ? [[name, evaluation.before] as const] : [],
  );
  return tasks.length === spec.tasks.length ? Object.fromEntries(tasks) : undefined;
}

/** Returns the run's own settings without training, with its checkpoint as the start. */
function evaluationRun({ apiVersion, kind, metadata, spec }: Run, as: string, samples: number | undefined): Run {
  const { learningRateSchedule: _, ...algorithm } = spec.algorithm;
  // The checkpoint has the warm start in it, and the bucket is the other run's.
  const { suspend: __, notifications: ___, warmStart: ____, results: _____, ...rest } = spec;
  return {
    apiVersion,
    kind,
    metadata: { name: as, namespace: metadata.namespace, labels: { "longrun.dev/evaluates": metadata.name } },
    spec: {
      ...rest,
      initFrom: { run: metadata.name },
      evaluation: { ...spec.evaluation, before: true, after: false, ...(samples !== undefined && { samples }) },
      // A run must train after the evaluation. This is the shortest training, and the deletion ends it.
      stopping: { iterations: 1 },
      algorithm: { ...algorithm, criticWarmupIterations: 0 },
      learner: { ...spec.learner, storage: { ...spec.learner.storage, retain: "Never" } },
    },
  } as unknown as Run;
}

async function until<T>(
  cluster: Cluster,
  name: string,
  { timeoutSeconds }: Pick<ChangeOptions, "timeoutSeconds">,
  holds: (run: Run) => T | undefined,
): Promise<T> {
  const deadlineMs = Date.now() + timeoutSeconds * 1000;
  for (;;) {
    const run = await readRun(cluster, name);
    const found = holds(run);
    if (found !== undefined) return found;
    if (cluster.signal.aborted) throw cluster.signal.reason;
    if (Date.now() > deadlineMs) {
      const now = statusLines(run, Date.now()).at(-1);
      throw new ControllerError("failed", `${name} is not done after ${timeoutSeconds} s: ${now}`);
    }
    await sleep(POLL_SECONDS * 1000, undefined, { signal: cluster.signal }).catch(() => {});
  }
}

/** Turns the API server's refusal into an error of one line. */
async function refusals<T>(request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (cause) {
    if (!(cause instanceof ApiError)) throw cause;
    throw new ControllerError(cause.status === 422 || cause.status === 409 ? "input" : "failed", cause.message, {
      cause,
    });
  }
}
