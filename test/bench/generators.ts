/** How far one learner with N generators goes: real collection, dispatch and HTTPS, and an engine and generators that only take time. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { uniforms } from "../../learner/engine/model/random.ts";
import type { Backend } from "../../learner/generators/backend.ts";
import { Generators } from "../../learner/generators/generators.ts";
import type { RowRequest } from "../../learner/generators/protocol.ts";
import { GeneratorServer } from "../../learner/generators/server.ts";
import { createLog } from "../../learner/log.ts";
import { createAuthority, createCertificate, writeTlsFiles } from "../../proto/certificates.ts";
import { iterationsOf } from "./overlap-run.ts";
import type { Bench, BenchResult } from "./result.ts";

/** Simulated seconds that pass in one. */
const SCALE = 60;
/** Of the learner and of each generator. */
const SLOTS = 64;
const TOKEN_SECONDS = 0.04;
const PROGRAM = { seconds: 60, spread: 1 };
/** Seconds in which an adapter is brought and loaded. */
const SWAP_SECONDS = 2;

interface Work {
  what: string;
  /** of a response */
  tokens: [shortest: number, longest: number];
  updateSeconds: number;
}

const WORKS: Work[] = [
  { what: "short responses", tokens: [200, 1000], updateSeconds: 120 },
  { what: "short responses, a learner four times as fast", tokens: [200, 1000], updateSeconds: 30 },
  { what: "long responses", tokens: [1000, 5000], updateSeconds: 120 },
];
/** 0: the learner writes by itself. */
const COUNTS = [0, 1, 2, 4, 8];

/** Slots whose rows only take time. */
class SimulatedSlots {
  readonly #work: Work;
  #free = SLOTS;
  readonly #waiting: (() => void)[] = [];
  /** Rows that have a slot, and who waits until there is none. */
  #open = 0;
  #empty: (() => void)[] = [];
  rowSeconds = 0;

  constructor(work: Work) {
    this.#work = work;
  }

  async row(seed: number): Promise<void> {
    this.#open++;
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const [shortest, longest] = this.#work.tokens;
    const tokens = shortest + uniforms(seed, "bench", "tokens")() * (longest - shortest);
    const from = performance.now();
    await sleep((1000 * tokens * TOKEN_SECONDS) / SCALE);
    this.rowSeconds += (performance.now() - from) / 1000;
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
    if (--this.#open === 0) for (const resolve of this.#empty.splice(0)) resolve();
  }

  async untilEmpty(): Promise<void> {
    if (this.#open > 0) await new Promise<void>((resolve) => this.#empty.push(resolve));
  }
}

/** As our engine: it ends its rows before it takes new weights. As vLLM: both adapters are there at once. */
function simulatedBackend(slots: SimulatedSlots, engine: Backend["engine"]): Backend {
  return {
    ...{ engine, device: "cuda", slots: SLOTS, failure: undefined },
    hasWeights: async () => true,
    load: async (folder) => {
      if (engine === "Longrun") await slots.untilEmpty();
      await sleep((1000 * SWAP_SECONDS) / SCALE);
      await rm(folder, { recursive: true, force: true });
    },
    generate: async (rows: readonly RowRequest[], _, onRow) => {
      const one = async ({ id, seed }: RowRequest) => {
        await slots.row(seed);
        onRow({ id, tokens: [1], logProbs: [-1], finish: "stop" });
      };
      await Promise.all(rows.map(one));
    },
    close: async () => {},
  };
}

interface Found {
  what: string;
  generators: number;
  engine: string;
  secondsPerIteration: number;
  updateShare: number;
  slotShare: number;
  meanLag: number;
}

async function simulate(
  work: Work,
  count: number,
  engine: Backend["engine"],
  counts: { iterations: number; uncounted: number },
): Promise<Found> {
  const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  const authority = await createAuthority({ validSeconds: 3600 });
  for (const role of ["learner", "generator"] as const) {
    const request = { role, name: role, hosts: ["127.0.0.1"], validSeconds: 3600 };
    await writeTlsFiles(join(directory, role), await createCertificate(authority, request));
  }
  const own = new SimulatedSlots(work);
  const all = Array.from({ length: count }, () => new SimulatedSlots(work));
  const servers: GeneratorServer[] = [];
  for (const slots of all)
    servers.push(
      await GeneratorServer.listen({
        ...{ backend: simulatedBackend(slots, engine), host: "127.0.0.1", port: 0, probePort: 0, drainSeconds: 0 },
        ...{ tlsDirectory: join(directory, "generator"), folder: join(directory, "received"), onFault: console.error },
      }),
    );
  const response = { response: Int32Array.of(1), logProbs: Float32Array.of(-1), finished: true };
  const same = { logProbs: Float32Array.of(-1), referenceLogProbs: new Float32Array(1) };
  const generators =
    count === 0
      ? undefined
      : new Generators({
          ...{ urls: servers.map(({ port }) => new URL(`https://127.0.0.1:${port}`)), device: "cuda", eosIds: [2] },
          ...{ tlsDirectory: join(directory, "learner"), directory: join(directory, "weights"), vocabSize: 8 },
          engine: {
            evaluate: async (batch) => batch.map(() => ({ ...same, values: same.logProbs, entropies: same.logProbs })),
            savePolicy: async (folder) => {
              await mkdir(folder, { recursive: true });
              await writeFile(join(folder, "adapter_config.json"), "{}");
            },
          },
          ...{ isCurrent: () => true, noGeneratorSeconds: 60, log: createLog("learner", "warn"), tell: () => {} },
          signal: new AbortController().signal,
        });
  let since = 0;
  const busy = () => [own, ...all].reduce((sum, { rowSeconds }) => sum + rowSeconds, 0);
  let busyBefore = 0;
  const { seconds, meanLag } = await iterationsOf(
    {
      engine: {
        generate: async (prompts, { seeds }, listener) => {
          const one = async (_: Int32Array, i: number) => {
            await own.row(seeds[i]!);
            listener?.(i, { ...response, ended: true });
            return response;
          };
          return Promise.all(prompts.map(one));
        },
        update: () => sleep((1000 * work.updateSeconds) / SCALE),
      },
      ...(generators && { generators }),
      algorithm: { maxStaleness: 2 },
      ...{ actors: 8, slots: 64, ...counts },
      programs: { seconds: PROGRAM.seconds / SCALE, spread: PROGRAM.spread },
    },
    () => {
      since = performance.now();
      busyBefore = busy();
    },
  );
  const wall = (performance.now() - since) / 1000;
  for (const server of servers) await server.end();
  await rm(directory, { recursive: true, force: true });
  const secondsPerIteration = (SCALE * seconds.reduce((sum, each) => sum + each, 0)) / seconds.length;
  return {
    ...{ what: work.what, generators: count, engine: count === 0 ? "the learner" : engine, secondsPerIteration },
    updateShare: work.updateSeconds / secondsPerIteration,
    slotShare: (busy() - busyBefore) / (wall * SLOTS * Math.max(1, count)),
    meanLag: meanLag.reduce((sum, lag) => sum + lag, 0) / meanLag.length,
  };
}

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: { iterations: { type: "string", default: "11" }, uncounted: { type: "string", default: "4" } },
  });
  const counts = { iterations: Number(values.iterations), uncounted: Number(values.uncounted) };
  const raw: Found[] = [];
  for (const work of WORKS) {
    for (const count of COUNTS) raw.push(await simulate(work, count, "Longrun", counts));
    raw.push(await simulate(work, 2, "VLLM", counts));
  }
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const rows = raw.map((found) => ({
    what: found.what,
    generators: found.generators,
    engine: found.engine,
    "s/iteration": found.secondsPerIteration.toFixed(0),
    "learner's own step": percent(found.updateShare),
    "slots in use": percent(found.slotShare),
    "mean lag": found.meanLag.toFixed(2),
  }));
  const method =
    `A simulation. B 128, m 1.25, maxStaleness 2, CarryOver under Wait; real collection, store, dispatch and HTTPS; learner and generators have ${SLOTS} slots and take ` +
    `${TOKEN_SECONDS} s a token; 200 to 1,000 tokens a response, or 1,000 to 5,000; updates of 120 s, or 30 s; programs of 30 to 90 s on 512 slots; new weights take ` +
    `${SWAP_SECONDS} s; ${SCALE} times as fast; ${counts.iterations - counts.uncounted} iterations after the first ${counts.uncounted}. ` +
    "Longrun: a generator ends its rows before it takes new weights";
  return { rows, goals: [], method, raw };
}

export const generators: Bench = { about: "how far one learner with N generators goes (a simulation)", run };
