import type { Collected } from "./context.ts";
import { SMALLEST_GROUP, samplesPerPrompt } from "./rl/groups.ts";
import type { Run } from "./run.ts";
import type { Store } from "./store/store.ts";
import type { OpenGroup, Sample } from "./store/types.ts";

/** The parts of a run that collection uses. */
type Collecting = Pick<Run, "spec" | "store" | "server" | "rollout" | "phases" | "grades" | "iterations" | "waiting">;

/**
 * "Sample m B prompts, a solution for each, execute; wait until B executions complete" (Algorithm 1).
 *
 * | `collection` | in flight | trained on | the rest |
 * | --- | --- | --- | --- |
 * | `CarryOver` | filled up to m B | the B complete ones that were dispatched first | stays in flight and trains later |
 * | `Discard` | m B | the same | is thrown away, finished or not |
 * | `WaitAll` | B | all of them | there is none |
 *
 * The unit is a group: the `groupSize` samples of one prompt that GRPO and RLOO compare, or else one sample. A group is
 * launched and trained on as a whole. It is complete when none of its executions is queued or runs. A lost member makes
 * the batch smaller. A group that has lost all members but one is broken: it is left out, and a new one launched.
 *
 * Collection waits for no particular execution, except under `stalenessPolicy: Wait`. Then at most (maxStaleness + 1) B
 * are in flight or wait to be trained on, and a batch waits for old executions that would otherwise be trained on past
 * `maxStaleness`.
 */
export async function collect(run: Collecting, iteration: number): Promise<Collected> {
  const { algorithm } = run.spec;
  const { store, server, rollout, phases, grades, iterations, waiting } = run;
  const version = iteration - 1;
  const groupSize = samplesPerPrompt(algorithm);
  const size = algorithm.batchSize / groupSize;
  const wait = algorithm.stalenessPolicy === "Wait";
  const oversampled = algorithm.collection === "WaitAll" ? size : Math.ceil(algorithm.oversampling * size);
  const target = wait ? Math.min(oversampled, (algorithm.maxStaleness + 1) * size) : oversampled;
  const oldest = version - algorithm.maxStaleness;
  const since = algorithm.stalenessPolicy === "Drop" ? Math.max(oldest, 0) : 0;
  const smallest = Math.min(groupSize, SMALLEST_GROUP);
  let staleWaited = 0;

  const broken = ({ unfinished, finished }: OpenGroup) => unfinished === 0 && finished < smallest;
  const usable = () => store.openGroups({ since }).filter((group) => !broken(group));
  const launch = async () => {
    const count = target - usable().length;
    if (count <= 0) return;
    phases.enter("generate", count * groupSize);
    iterations.countLaunched(await rollout.launch(count, version));
  };
  const isComplete = (groups: OpenGroup[]) => {
    if (groups.filter(complete).length < size) return false;
    if (algorithm.collection === "WaitAll") return groups.every(complete);
    const overdue = wait ? unfinishedTooOld(groups, { size, oldest, version }) : 0;
    staleWaited = Math.max(staleWaited, overdue);
    return overdue === 0;
  };

  await launch();
  for (let groups = usable(); !isComplete(groups); groups = usable()) {
    phases.enter("execute", algorithm.batchSize, Math.min(store.takeable({ since }), algorithm.batchSize));
    if (groups.length < size) await launch();
    else await server.waitForChange(waiting); // some group is not complete, so something is in flight
  }
  grades.gradeFinished();

  const taken = usable().filter(complete).slice(0, size);
  const batch = store.groupSamples(taken.map(({ id }) => id));
  const ids = (samples: Sample[]) => samples.map(({ id }) => id);
  const staleIds = since === 0 ? [] : ids(store.nextBatch(Number.MAX_SAFE_INTEGER, { until: since - 1 }));
  const brokenGroups = store.openGroups({ since }).filter(broken);
  const brokenIds = ids(store.groupSamples(brokenGroups.map(({ id }) => id)));
  const collected = { batch, staleIds, staleWaited, surplusIds: [], brokenIds, abandonedSeconds: [] };
  if (algorithm.collection !== "Discard") return collected;
  const named = new Set([...ids(batch), ...brokenIds]);
  const surplusIds = ids(store.nextBatch(Number.MAX_SAFE_INTEGER, { since })).filter((id) => !named.has(id));
  store.discardUnfinished("the batch is complete and algorithm.collection is Discard");
  return { ...collected, surplusIds, abandonedSeconds: abandonedSeconds(store, version) };
}

/** Returns the seconds that each execution of a policy version ran before it was discarded or lost. */
export function abandonedSeconds(store: Pick<Store, "observedDurations">, version: number): number[] {
  const durations = store.observedDurations({ since: version, until: version });
  return durations.filter(({ completed }) => !completed).map(({ seconds }) => seconds);
}

const complete = ({ unfinished }: OpenGroup) => unfinished === 0;

/**
 * Returns how many unfinished executions a batch must wait for, so that no sample is trained on past `maxStaleness`.
 * The samples of versions up to `oldest` + k must fit into this batch and the k batches after it; a batch takes the
 * oldest first.
 */
function unfinishedTooOld(groups: OpenGroup[], o: { size: number; oldest: number; version: number }): number {
  for (let until = Math.max(o.oldest, 0); until <= o.version; until++) {
    const old = groups.filter(({ iteration }) => iteration <= until);
    const left = old.length - Math.min(old.filter(complete).length, o.size);
    const unfinished = old.reduce((sum, group) => sum + group.unfinished, 0);
    if (unfinished > 0 && left > (until - o.oldest) * o.size) return unfinished;
  }
  return 0;
}
