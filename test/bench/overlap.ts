/** Measures the engine's busy share while programs run, and the time from a response's end to the start of its program. */
import { closeSync, existsSync, fdatasyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Algorithm } from "../../crds/trainingrun.ts";
import { type RunningEngine, readTokenizer, startEngine } from "../../learner/engine/index.ts";
import { ENGINE_USES } from "../../proto/engine-seconds.ts";
import { type BenchEngine, type Counted, iterationsOf, type Setting } from "./overlap-run.ts";
import { recipeTimes } from "./recipe-times.ts";
import { type Bench, type BenchResult, quantile } from "./result.ts";
import { SCALE, SimulatedEngine } from "./simulated-engine.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const GOAL_BUSY = 0.95;
const GOAL_MILLISECONDS = 50;

/** The simulated run, about a 3B policy on one GPU. */
const SIMULATED = {
  slots: 64,
  tokenSeconds: 0.04,
  shortestTokens: 200,
  longestTokens: 1000,
  updateSeconds: 120,
  programSeconds: 180,
  /** Programs take 45 to 315 s. */
  programSpread: 1.5,
};

interface Situation {
  what: string;
  algorithm: Partial<Algorithm>;
  /** Programs that run side by side. */
  programs: number;
  goal?: number;
}

const SITUATIONS: Situation[] = [
  { what: "maxStaleness 2", algorithm: { maxStaleness: 2 }, programs: 512, goal: GOAL_BUSY },
  { what: "maxStaleness 0", algorithm: { maxStaleness: 0 }, programs: 512 },
  { what: "maxStaleness 2, too few actors", algorithm: { maxStaleness: 2 }, programs: 64 },
];

async function* run(flags: string[]): AsyncGenerator<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      iterations: { type: "string", default: "12" },
      uncounted: { type: "string", default: "3" },
      rows: { type: "string", default: "1500" },
      part: { type: "string" },
    },
  });
  const counts = { iterations: Number(values.iterations), uncounted: Number(values.uncounted) };
  if (values.part === "recipes") {
    yield await recipeTimes(counts);
    return;
  }
  if (values.part !== "latency") yield await simulated(counts);
  if (values.part !== "simulated") yield await latency(Number(values.rows));
}

interface Simulated {
  what: string;
  counted: Omit<Counted, "starts">;
  busyShare: number;
  /** Share of the slots that had a row while the engine generated. */
  slotShare: number;
}

async function simulated(counts: { iterations: number; uncounted: number }): Promise<BenchResult> {
  const raw: Simulated[] = [];
  for (const { what, algorithm, programs } of SITUATIONS) {
    const engine = new SimulatedEngine(SIMULATED);
    const { starts, ...counted } = await iterationsOf(
      {
        ...{ engine, algorithm, actors: 8, slots: programs / 8, ...counts },
        programs: { seconds: SIMULATED.programSeconds / SCALE, spread: SIMULATED.programSpread },
      },
      () => engine.count(),
    );
    const seconds = sum(counted.seconds);
    const busyShare = engine.busySeconds / seconds;
    const slotShare = engine.rowSeconds / SIMULATED.slots / engine.generatingSeconds;
    raw.push({ what, counted, busyShare, slotShare });
  }
  const rows = raw.map(({ what, counted, busyShare, slotShare }) => {
    const total = sum(counted.seconds);
    const shares = ENGINE_USES.map((use) => {
      const seconds = sum(counted.engineSeconds.map((each) => each?.[use] ?? Number.NaN));
      return [use, percent(seconds / total)];
    });
    return {
      what,
      busy: percent(busyShare),
      "slots in use": percent(slotShare),
      "s/iteration": ((SCALE * total) / counted.seconds.length).toFixed(0),
      "mean lag": (sum(counted.meanLag) / counted.meanLag.length).toFixed(2),
      ...Object.fromEntries(shares),
    };
  });
  const goals = SITUATIONS.flatMap(({ what, goal }, i) =>
    goal === undefined
      ? []
      : [
          {
            what: `engine busy, ${what}`,
            goal: `>= ${percent(goal)}`,
            measured: percent(raw[i]!.busyShare),
            met: raw[i]!.busyShare >= goal,
          },
        ],
  );
  const { slots, tokenSeconds, shortestTokens, longestTokens, updateSeconds, programSeconds, programSpread } =
    SIMULATED;
  const half = programSpread / 2;
  const method =
    `B 128, m 1.25, CarryOver under Wait; real collection, rollout, store and server, real clients as actors; an engine of ${slots} slots that takes ` +
    `${tokenSeconds} s a token, ${shortestTokens} to ${longestTokens} tokens a response and ${updateSeconds} s an update, and programs of ` +
    `${programSeconds * (1 - half)} to ${programSeconds * (1 + half)} s, 512 side by side (too few: 64), ${SCALE} times as fast; ` +
    `${counts.iterations - counts.uncounted} iterations after the first ${counts.uncounted}`;
  return { part: "simulated", rows, goals, method, raw };
}

/** The quickstart's policy, which notes when each response has ended. */
class NotedEngine implements BenchEngine {
  readonly #engine: RunningEngine;
  readonly endedAt = new WeakMap<Float32Array, number>();

  constructor(engine: RunningEngine) {
    this.#engine = engine;
  }

  async generate(...[prompts, options, listener]: Parameters<RunningEngine["generate"]>) {
    const ended: number[] = [];
    const responses = await this.#engine.generate(prompts, options, (index, part) => {
      ended[index] = now();
      this.endedAt.set(part.logProbs, ended[index]!);
      listener?.(index, part);
    });
    for (const [i, { logProbs }] of responses.entries()) this.endedAt.set(logProbs, ended[i]!);
    return responses;
  }

  async update(): Promise<void> {}
}

interface Latency {
  store: string;
  /** Seconds from a response's end to its program's start. */
  waits: number[];
  /** Durations of fdatasync in the store's folder, before the run. */
  syncs: number[];
}

async function latency(rows: number): Promise<BenchResult> {
  const raw: Latency[] = [];
  for (const [store, parent] of [
    ["on the disk", tmpdir()],
    ["in memory", "/dev/shm"],
  ] as const)
    if (existsSync(parent)) raw.push({ store, syncs: syncsIn(parent), waits: await waitsOf(rows, parent) });
  const milliseconds = (values: readonly number[], share: number) => `${quantile(values, share).toFixed(1)} ms`;
  const byPercent = (values: readonly number[]) => Array.from({ length: 101 }, (_, i) => quantile(values, i / 100));
  return {
    part: "latency",
    rows: raw.map(({ store, waits, syncs }) => ({
      "the store is": store,
      programs: waits.length,
      p50: milliseconds(waits, 0.5),
      p90: milliseconds(waits, 0.9),
      p99: milliseconds(waits, 0.99),
      "a sync of the disk, p50": milliseconds(syncs, 0.5),
      "sync p99": milliseconds(syncs, 0.99),
    })),
    goals: raw.map(({ store, waits }) => ({
      what: `p99 from a response's end to its program's start, while the engine generates, the store ${store}`,
      goal: `<= ${GOAL_MILLISECONDS} ms`,
      measured: milliseconds(waits, 0.99),
      met: quantile(waits, 0.99) <= GOAL_MILLISECONDS,
    })),
    method:
      "the quickstart's policy on one thread, 64 slots, B 64, m 1.25; real collection, rollout, store and server; 256 slots of real clients in another process of " +
      "the same machine, whose programs take 0.5 to 1.5 s; from the message that a response has ended, in the learner's main thread, to the client's call of its " +
      "program; a row is stored and leased in one commit, which waits for the disk",
    raw: raw.map(({ store, waits, syncs }) => ({ store, waits: byPercent(waits), syncs: byPercent(syncs) })),
  };
}

/** Returns milliseconds from each response's end to its program's start. @param parent folder of the run's files */
async function waitsOf(rows: number, parent: string): Promise<number[]> {
  const tokenizer = readTokenizer(POLICY);
  const engine = await startEngine({ model: POLICY, threads: 1, slots: 64, positions: 512 });
  try {
    const noted = new NotedEngine(engine);
    const endedAt = new Map<string, number>();
    const batchSize = 64;
    const setting: Setting = {
      engine: noted,
      algorithm: { batchSize, maxStaleness: 2 },
      model: { temperature: 0.8, maxPromptTokens: 256, maxResponseTokens: 256 },
      ...{ actors: 8, slots: 32, iterations: Math.ceil(rows / batchSize), uncounted: 0 },
      programs: { seconds: 1, spread: 1 },
      encode: (text) => tokenizer.encode(text).subarray(0, 256),
      onStored: (samples) => {
        for (const { id, behaviourLogProbs } of samples) endedAt.set(id, noted.endedAt.get(behaviourLogProbs)!);
      },
    };
    const { starts } = await iterationsOf(setting, undefined, parent);
    return Object.entries(starts).map(([id, start]) => start - endedAt.get(id)!);
  } finally {
    await engine.close();
  }
}

/** Returns milliseconds of writes that wait for the disk, as the store's commits do. */
function syncsIn(parent: string): number[] {
  const path = join(parent, `longrun-sync-${process.pid}`);
  const file = openSync(path, "w");
  try {
    return Array.from({ length: 300 }, () => {
      const from = performance.now();
      writeSync(file, Buffer.alloc(4096));
      fdatasyncSync(file);
      return performance.now() - from;
    });
  } finally {
    closeSync(file);
    unlinkSync(path);
  }
}

/** Unix milliseconds, comparable between processes. */
const now = () => performance.timeOrigin + performance.now();
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const percent = (share: number) => `${(100 * share).toFixed(1)} %`;

export const overlap: Bench = { about: "the engine's busy share beside programs, and how soon programs start", run };
