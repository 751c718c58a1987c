import type { Collected } from "./context.ts";
import type { Idle } from "./phases.ts";
import { Resample } from "./resample.ts";
import { SMALLEST_GROUP, samplesPerPrompt } from "./rl/groups.ts";
import type { Generation } from "./rollout/generation.ts";
import type { Run } from "./run.ts";
import type { WaitOptions } from "./server/waiting.ts";
import type { OpenGroup, Sample } from "./store/types.ts";

/** The parts of a run that collection uses. */
type Collecting = Pick<Run, "spec" | "store" | "server" | "rollout" | "phases" | "grades" | "iterations" | "waiting">;

/**
 * "Sample m B prompts, a solution for each, execute; wait until B executions complete" (Algorithm 1). Solutions are generated
 * in the background: a program is executed as soon as its own response has ended, while others are generated.
 *
 * | `collection` | in flight | trained on | the rest |
 * | --- | --- | --- | --- |
 * | `CarryOver` | filled up to m B, or further (below) | the B complete ones that were dispatched first | stays in flight and trains later
 * |
 * | `Discard` | m B | the same | is thrown away, finished or not |
 * | `WaitAll` | B | all of them | there is none |
 *
 * The unit is a group: the `groupSize` samples of one prompt that GRPO and RLOO compare, or else one sample. A group is
 * launched and trained on as a whole. It is complete when all of it is generated and none of its executions is queued or runs.
 * A lost member makes the batch smaller. A group that has lost all members but one is broken: it is left out, and a new one
 * launched.
 *
 * Samples of a policy that is more than `maxStaleness` iterations ahead of the weights, which a learner finds that went back to an earlier
 * checkpoint, stay in the store until the weights are as near to them.
 *
 * Collection waits for no particular execution, except under `stalenessPolicy: Wait`. Then at most (maxStaleness + 1) B
 * are in flight or wait to be trained on, and a batch waits for old executions that would otherwise be trained on past
 * `maxStaleness`.
 *
 * `CarryOver` under `Wait` goes ahead, up to that bound. When the engine would be idle while the batch waits for programs, it
 * begins as many prompts as programs run. It also keeps up what was in flight before the iteration: it begins as many prompts as the
 * batch uses, less those that have ended already beyond a batch. It does neither while executions wait for an actor: more solutions
 * would only be older when they are trained on.
 *
 * `zeroSignal: Resample` throws away groups of a complete batch that teach nothing, and collection goes on (resample.ts).
 *
 * When the batch is complete no further generation starts. Generations under way run to their end and are stored, so that
 * one policy version writes all of a sample.
 *
 * Generators continue while the learner trains (`CarryOver` under `Wait`): collection keeps their slots full and queues one more batch
 * for them, within the same bound. One policy version writes a row; the generator reports it.
 */
export async function collect(run: Collecting, iteration: number): Promise<Collected> {
  const { algorithm, stopping } = run.spec;
  const { store, server, rollout, phases, grades, iterations, waiting } = run;
  const version = iteration - 1;
  const groupSize = samplesPerPrompt(algorithm);
  const size = algorithm.batchSize / groupSize;
  const wait = algorithm.stalenessPolicy === "Wait";
  const goesAhead = wait && algorithm.collection === "CarryOver";
  const most = wait ? (algorithm.maxStaleness + 1) * size : Number.POSITIVE_INFINITY;
  const oversampled = algorithm.collection === "WaitAll" ? size : Math.ceil(algorithm.oversampling * size);
  const oldest = version - algorithm.maxStaleness;
  // Newer ones are of a learner that has lost its last iterations. They train later, when the weights are as near to them.
  const until = version + algorithm.maxStaleness;
  const near = ({ iteration }: OpenGroup) => iteration <= until;
  const since = algorithm.stalenessPolicy === "Drop" ? Math.max(oldest, 0) : 0;
  const smallest = Math.min(groupSize, SMALLEST_GROUP);
  let staleWaited = 0;

  const generation = rollout.generation(version);
  const broken = ({ unfinished, finished }: OpenGroup) => unfinished === 0 && finished < smallest;
  const openGroups = () => withUnderway(store.openGroups({ since }).filter(near), generation.underway);
  const resample = new Resample(run, size);
  const usable = () => openGroups().filter((group) => !broken(group) && !resample.has(group));
  const executionsWait = () => store.leases.attempts.hasQueued();
  const atStart = usable();
  const surplus = Math.max(0, atStart.filter(complete).length - size);
  const kept = goesAhead && !executionsWait() ? atStart.length + size - surplus : 0;
  const target = Math.min(Math.max(oversampled, kept), most);
  const isComplete = (groups: OpenGroup[]) => {
    if (groups.filter(complete).length < size) return false;
    if (algorithm.collection === "WaitAll") return groups.every(complete);
    const overdue = wait ? unfinishedTooOld(groups, { size, oldest, version }) : 0;
    staleWaited = Math.max(staleWaited, overdue);
    return overdue === 0;
  };
  const overlaps = goesAhead && rollout.writesAhead && iteration < stopping.iterations;
  const ahead = (groups: OpenGroup[]) => {
    if (!goesAhead || executionsWait()) return 0;
    if (overlaps) return Math.min(most - groups.length, Math.ceil(generation.rowsToWriteAhead / groupSize));
    if (generation.isUnderWay) return 0;
    return Math.max(0, Math.min(most - groups.length, Math.ceil(store.leases.running().length / groupSize)));
  };
  const idleBecause = (groups: OpenGroup[]): Idle => {
    if (executionsWait()) return "idleActors";
    return goesAhead && groups.length >= most ? "idleStaleness" : "idlePrograms";
  };

  let isDone = false;
  try {
    for (;;) {
      const groups = usable();
      const isFull = isComplete(groups);
      if (isFull && resample.from(groups.filter(complete).slice(0, size))) continue;
      // A thrown group is one of the m B; a batch is filled again all the same.
      const open = Math.max(target - resample.size, size);
      const wanted = Math.max(open - groups.length, isFull && !overlaps ? 0 : ahead(groups));
      if (isFull && wanted === 0) break;

      const prompts = Math.min(wanted, generation.room);
      if (prompts > 0 || generation.isUnderWay) {
        phases.enter("generate", generation.begun + prompts * groupSize, generation.launched.samples);
      } else {
        const done = Math.min(store.takeable({ since, until }), algorithm.batchSize);
        phases.enter("execute", algorithm.batchSize, done, idleBecause(groups));
      }
      generation.begin(prompts);
      if (isFull && overlaps) break;
      await server.waitForChange(generation.isUnderWay ? whileGenerating(waiting, generation) : waiting);
    }
    isDone = true;
  } finally {
    if (!(overlaps && isDone)) await generation.end();
  }
  iterations.countLaunched(generation.takeLaunched());
  grades.gradeFinished();

  const taken = usable().filter(complete).slice(0, size);
  const batch = store.groupSamples(taken.map(({ id }) => id));
  const ids = (samples: Sample[]) => samples.map(({ id }) => id);
  const staleIds = since === 0 ? [] : ids(store.nextBatch(Number.MAX_SAFE_INTEGER, { until: since - 1 }));
  const brokenGroups = openGroups().filter(broken);
  const brokenIds = ids(store.groupSamples(brokenGroups.map(({ id }) => id)));
  const zeroSignalIds = resample.samples();
  const left = { staleIds, staleWaited, surplusIds: [], brokenIds, zeroSignalIds };
  const collected = { batch, ...left, abandonedSeconds: [] };
  if (algorithm.collection !== "Discard") return collected;
  const named = new Set([...ids(batch), ...brokenIds, ...zeroSignalIds]);
  const surplusIds = ids(store.nextBatch(Number.MAX_SAFE_INTEGER, { since })).filter((id) => !named.has(id));
  store.discardUnfinished("the batch is complete and algorithm.collection is Discard");
  return { ...collected, surplusIds, abandonedSeconds: store.abandonedSeconds(version) };
}

const complete = ({ unfinished }: OpenGroup) => unfinished === 0;

/**
 * Returns the groups of the store and the begun groups. Samples that are still generated count as unfinished.
 * @param underway how many these are, by group
 */
function withUnderway(stored: OpenGroup[], underway: Generation["underway"]): OpenGroup[] {
  const known = new Set(stored.map(({ id }) => id));
  const groups = stored.map((group) => {
    return { ...group, unfinished: group.unfinished + (underway.get(group.id)?.left ?? 0) };
  });
  for (const [id, { left: unfinished, iteration }] of underway)
    if (!known.has(id)) groups.push({ id, iteration, unfinished, finished: 0 });
  return groups;
}

/** Waits for a sample that is generated, too. How long no program has run says nothing then. */
const whileGenerating = (waiting: WaitOptions, generation: Generation): WaitOptions => ({
  ...waiting,
  idleSeconds: Number.POSITIVE_INFINITY,
  other: generation.changed(),
});

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
