import type { Collected } from "./progress.ts";
import { SMALLEST_GROUP, samplesPerPrompt } from "./rl/groups.ts";
import type { Run } from "./run.ts";
import type { OpenGroup, Sample } from "./store/types.ts";

/** The parts of a run that collection uses. */
type Collecting = Pick<Run, "spec" | "store" | "server" | "rollout" | "phases" | "grades" | "iterations" | "waiting">;

/**
 * "Sample m B prompts, a solution for each, execute; wait until B executions complete" (Algorithm 1).
 *
 * | `collection` | in flight | trained on | the rest |
 * | --- | --- | --- | --- |
 * | `CarryOver` | topped up to m B | the B that were dispatched first, of those that are complete | stays in flight and trains later |
 * | `Discard` | m B | the same | is thrown away, finished or not |
 * | `WaitAll` | B | all of them | there is none |
 *
 * All of it goes by groups: the `groupSize` samples of one prompt that GRPO and RLOO compare, or, without them, each
 * sample alone. A group is launched whole, and trained on whole: it is complete when none of its executions is under
 * way. Members that are lost for good are missing from it, and the batch is that much smaller; a group that has lost all
 * but one is left out and replaced by a new one.
 *
 * It never waits for a particular execution, except under `stalenessPolicy: Wait`: then no more than (maxStaleness + 1) B
 * are in flight or wait to be trained on, and a batch waits for old ones of which otherwise some would be trained on past
 * `maxStaleness`. Executions that were lost are replaced by new ones.
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
  const brokenIds = ids(
    store.groupSamples(
      store
        .openGroups({ since })
        .filter(broken)
        .map(({ id }) => id),
    ),
  );
  let abandonedSeconds: number[] = [];
  let surplusIds: string[] = [];
  if (algorithm.collection === "Discard") {
    const named = new Set([...ids(batch), ...brokenIds]);
    surplusIds = ids(store.nextBatch(Number.MAX_SAFE_INTEGER, { since })).filter((id) => !named.has(id));
    store.discardUnfinished("the batch is complete and algorithm.collection is Discard");
    abandonedSeconds = store
      .observedDurations({ since: version, until: version })
      .filter(({ completed }) => !completed)
      .map(({ seconds }) => seconds);
  }
  return { batch, staleIds, staleWaited, surplusIds, brokenIds, abandonedSeconds };
}

const complete = ({ unfinished }: OpenGroup) => unfinished === 0;

/**
 * How many unfinished executions a batch has to wait for, so that every sample can be trained on within the bound: what
 * versions up to `oldest` + k wrote must fit into this batch and the k after it, and a batch takes the oldest first.
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
