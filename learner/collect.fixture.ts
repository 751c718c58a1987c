/** Collection over a real store and a real rollout, whose engine and actors are the test's. */
import { join } from "node:path";
import type { Algorithm, TrainingRunSpec } from "../crds/trainingrun.ts";
import { collect } from "./collect.ts";
import type { Collected } from "./context.ts";
import type { Engine, Listener } from "./engine/index.ts";
import type { Generation, Writers } from "./rollout/generation.ts";
import { Rollout } from "./rollout/rollout.ts";
import type { Run } from "./run.ts";
import type { WaitOptions } from "./server/waiting.ts";
import { newResult, scratchFolder } from "./store/store.fixture.ts";
import { openStore, type Store } from "./store/store.ts";
import type { AttemptKey } from "./store/types.ts";

const folder = scratchFolder();
let stores = 0;

const RESPONSE = { response: Int32Array.of(1), logProbs: Float32Array.of(-1), finished: true };

export const newStorePath = () => join(folder, `${stores++}.sqlite`);

export function specOf(algorithm: Partial<Algorithm>): TrainingRunSpec {
  return {
    seed: 3,
    stopping: { iterations: 100 },
    algorithm: {
      ...{ batchSize: 4, oversampling: 1.5, collection: "CarryOver", maxStaleness: 2, stalenessPolicy: "Wait" },
      ...algorithm,
    },
    model: {
      ...{ generationBatchSize: 64, temperature: 1, topP: 1, maxPromptTokens: 1e6, maxResponseTokens: 8 },
      ...{ instrumenter: "None", instrumenterMaxPromptTokens: 8, instrumenterMaxResponseTokens: 8 },
    },
    prompts: { style: "Short", improveProbability: 0.5, previousSolutions: 64, outputTailBytes: 1024 },
  } as unknown as TrainingRunSpec;
}

/** Every response ends at once. */
const QUICK_ENGINE: Pick<Engine, "generate"> = {
  generate: async (prompts: Int32Array[], _: unknown, told?: Listener) => {
    for (const i of prompts.keys()) told?.(i, { ...RESPONSE, ended: true });
    return prompts.map(() => RESPONSE);
  },
};

/** Responses end when the test says so. */
export class HeldEngine {
  /** Rows whose response has not ended, in the order of their prompts; call one to end it. */
  readonly rows: (() => void)[] = [];
  fail: (cause: Error) => void = () => {};

  async generate(prompts: Int32Array[], _: unknown, told?: Listener) {
    const failed = new Promise<never>((_, reject) => {
      this.fail = reject;
    });
    const ended = prompts.map(
      (_, i) =>
        new Promise<void>((resolve) => {
          this.rows.push(() => {
            told?.(i, { ...RESPONSE, ended: true });
            resolve();
          });
        }),
    );
    await Promise.race([Promise.all(ended), failed]);
    return prompts.map(() => RESPONSE);
  }
}

/** A rollout of programs that say nothing. */
export function rolloutOf(
  spec: TrainingRunSpec,
  store: Store,
  engine: Pick<Engine, "generate">,
  writers?: Writers,
): Rollout {
  return new Rollout({
    ...{ engine, writers, store, spec, nextNumber: store.nextSequence() },
    addSamples: async (samples) => store.addSamples(samples),
    tasks: [
      {
        weight: 1,
        ...{ name: "diamonds", description: "Predict.", columns: [], files: [] },
        ...{ snippet: [], submissionFormat: [], packages: [] },
      },
    ],
    encode: (messages) => Int32Array.from(Buffer.from(messages.map(({ content }) => content).join())),
    decode: () => "A plan.\n```python\nprint(1)\n```",
  });
}

/** A sample's name without leading zeros, `s1`. */
const short = (id: string) => id.replace(/^s0+/, "s");

/**
 * Two iterations over a real store, in which `before` prompts are queued already. Responses end at once. Then executions end `together` at a
 * time, in the order of `speeds`: a sample's place in it is its number. `slots`: executions that run side by side.
 */
export async function twoIterations(
  algorithm: Partial<Algorithm>,
  {
    speeds,
    together,
    lost = [],
    before = 0,
    slots = Number.POSITIVE_INFINITY,
    rewardOf,
  }: {
    speeds: number[];
    together: number;
    lost?: string[];
    before?: number;
    slots?: number;
    /** Reward of a sample's number; absent: there are no grades. */
    rewardOf?: (sequence: number) => number;
  },
) {
  // Unix milliseconds.
  let clock = 0;
  const store = openStore(newStorePath(), {
    leaseSeconds: 60,
    leaseGraceSeconds: 5,
    now: () => clock,
    maxAttempts: 2,
  });
  await store.beginLineage(() => true);
  const launches: number[] = [];
  let mostOpen = 0;
  const running: { key: AttemptKey; order: number }[] = [];
  const spec = specOf(algorithm);
  const rollout = rolloutOf(spec, store, QUICK_ENGINE);
  const watched = (generation: Generation) => {
    const { begin } = generation;
    generation.begin = (prompts) => {
      if (prompts > 0) launches.push(prompts);
      begin.call(generation, prompts);
    };
    return generation;
  };
  const phases: string[] = [];
  const run = {
    ...{ spec, store, waiting: {} },
    phases: { enter: (name: string, _: number, __: number, idle = "") => phases.push(`${name} ${idle}`.trim()) },
    iterations: { countLaunched: () => {} },
    grades: {
      gradeFinished: () => {
        if (!rewardOf) return;
        for (const { id, sequence } of store.ungraded())
          store.setGrade(id, { valid: false, reward: rewardOf(sequence), reason: "failed" });
      },
    },
    rollout: { generation: (iteration: number) => watched(rollout.generation(iteration)) },
    server: {
      waitForChange: async ({ other }: WaitOptions) => {
        if (other) return other;
        mostOpen = Math.max(mostOpen, store.openGroups().length);
        for (let free = slots - running.length; free > 0; free--) {
          const lease = store.leases.takeAll(["actor-0"])[0];
          if (lease === undefined) break;
          running.push({ key: lease, order: speeds[(Number(lease.execution.slice(1)) - 1) % speeds.length]! });
        }
        running.sort((a, b) => a.order - b.order);
        for (const { key } of running.splice(0, together)) {
          if (lost.includes(short(key.execution))) store.leases.fail("actor-0", key, "a node was lost");
          else store.leases.accept("actor-0", key, newResult());
        }
        clock += 4000;
        store.leases.extend(
          "actor-0",
          running.map(({ key }) => ({ ...key, elapsedSeconds: 3 })),
        );
      },
    },
  } as unknown as Run;
  const earlier = rollout.generation(0);
  earlier.begin(before);
  await earlier.end();
  const iterations: Collected[] = [];
  for (const iteration of [1, 2]) {
    const collected = await collect(run, iteration);
    const sampleIds = collected.batch.map(({ id }) => id);
    const droppedIds = [
      ...collected.staleIds,
      ...collected.surplusIds,
      ...collected.brokenIds,
      ...collected.zeroSignalIds,
    ];
    store.commitIteration({ iteration, sampleIds, droppedIds, metrics: {} });
    iterations.push({
      ...collected,
      ...{ staleIds: collected.staleIds.map(short), surplusIds: collected.surplusIds.map(short) },
      brokenIds: collected.brokenIds.map(short),
      ...(collected.zeroSignalIds.length > 0 && { zeroSignalIds: collected.zeroSignalIds.map(short) }),
    });
  }
  const batches = iterations.map(({ batch }) => batch.map(({ id }) => short(id)));
  const counts = store.counts();
  store.close();
  return { batches, launches, counts, iterations, phases, mostOpen };
}
