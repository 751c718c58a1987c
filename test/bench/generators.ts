/**
 * Simulates the speed of one learner with N generators: a simulation of events, by the rules of collect.ts and generators.ts, in which work
 * only takes time.
 */
import { uniforms } from "../../learner/engine/model/random.ts";
import { updateSeconds } from "./recipe-times.ts";
import type { Bench, BenchResult } from "./result.ts";

const BATCH = 128;
const MAX_STALENESS = 2;
const OVERSAMPLING = 1.25;
/** Slots of the learner, and of each generator. */
const SLOTS = 64;
const TOKEN_SECONDS = 0.04;
const PROGRAM_SECONDS = [30, 90] as const;
/** Time to transfer and load an adapter; and 7B weights in float32, 30 GB at 10 Gbit/s. */
const [SWAP_SECONDS, LARGE_SWAP_SECONDS] = [2, 40];
const ITERATIONS = 60;
const UNCOUNTED = 20;

interface Work {
  what: string;
  tokens: readonly [shortest: number, longest: number];
  updateSeconds: number;
  swapSeconds: number;
}

/** 7B, every weight and a critic, on eight A100 of 80 GB with layers recomputed. Prompts have 1,000 tokens. */
function largeWork(tokens: Work["tokens"]): Work {
  const batchTokens = BATCH * (1000 + (tokens[0] + tokens[1]) / 2);
  const machine = {
    isFull: true,
    isCritic: true,
    checkpointing: true,
    gpus: 8,
    bytesPerSecond: 2.0e12,
    operationsPerSecond: 312e12,
  };
  const seconds = updateSeconds(7.6e9, batchTokens, machine);
  const name = tokens.map((count) => count.toLocaleString("en")).join(" to ");
  return {
    what: `7B: ${name} tokens, updates of ${seconds.toFixed(0)} s`,
    tokens,
    updateSeconds: seconds,
    swapSeconds: LARGE_SWAP_SECONDS,
  };
}

const WORKS: readonly Work[] = [
  { what: "200 to 1,000 tokens, updates of 120 s", tokens: [200, 1000], updateSeconds: 120, swapSeconds: SWAP_SECONDS },
  { what: "200 to 1,000 tokens, updates of 30 s", tokens: [200, 1000], updateSeconds: 30, swapSeconds: SWAP_SECONDS },
  {
    what: "1,000 to 5,000 tokens, updates of 120 s",
    tokens: [1000, 5000],
    updateSeconds: 120,
    swapSeconds: SWAP_SECONDS,
  },
  largeWork([300, 900]),
  largeWork([1000, 5000]),
];

/** The writers: the learner alone, or `count` generators, which end their rows before they take new weights (Longrun) or do not (VLLM). */
interface Writers {
  engine: "the learner" | "Longrun" | "VLLM";
  count: number;
}
const WRITERS: readonly Writers[] = [
  { engine: "the learner", count: 1 },
  ...[1, 2, 4, 8].map((count) => ({ engine: "Longrun" as const, count })),
  ...[1, 2, 4].map((count) => ({ engine: "VLLM" as const, count })),
];

interface Sample {
  number: number;
  /** The policy version that wrote it; until the sample is sent, the version that began it. */
  version: number;
  state: "waits" | "written" | "executed" | "complete";
}

interface Writer {
  rows: number;
  version: number;
  isSwapping: boolean;
}

class Simulation {
  readonly #work: Work;
  readonly #engine: Writers["engine"];
  readonly #writers: Writer[];
  readonly #events: { at: number; happen: () => void }[] = [];
  #now = 0;
  #version = 0;
  #numbers = 0;
  #open: Sample[] = [];
  #isUpdating = false;
  /** Samples that were open when the iteration began, and how many of them were complete. */
  #atStart = { open: 0, complete: 0 };
  /** Slot-seconds with a row since the counted iterations began. */
  rowSeconds = 0;
  readonly iterations: { at: number; lag: number }[] = [];

  constructor(work: Work, { engine, count }: Writers) {
    this.#work = work;
    this.#engine = engine;
    this.#writers = Array.from({ length: count }, () => ({ rows: 0, version: 0, isSwapping: false }));
  }

  run(): void {
    this.#look();
    while (this.iterations.length < ITERATIONS) {
      const next = this.#events.reduce((first, each) => (each.at < first.at ? each : first));
      this.#events.splice(this.#events.indexOf(next), 1);
      if (this.iterations.length >= UNCOUNTED)
        this.rowSeconds += (next.at - this.#now) * this.#writers.reduce((sum, { rows }) => sum + rows, 0);
      this.#now = next.at;
      next.happen();
      this.#look();
    }
  }

  #in(seconds: number, happen: () => void): void {
    this.#events.push({ at: this.#now + seconds, happen });
  }

  #count(...states: Sample["state"][]): number {
    return this.#open.filter(({ state }) => states.includes(state)).length;
  }

  /** Begins prompts, sends rows, and begins the update when the batch is complete: collect.ts. */
  #look(): void {
    const alone = this.#engine === "the learner";
    const isFull = !this.#isUpdating && this.#isComplete();
    if (!this.#isUpdating) this.#begin(alone ? this.#wantedAlone(isFull) : this.#wantedAhead());
    this.#send();
    if (!isFull || this.#isUpdating || (alone && this.#count("waits", "written") > 0)) return;
    const batch = this.#open.filter(({ state }) => state === "complete").slice(0, BATCH);
    this.#isUpdating = true;
    this.#in(this.#work.updateSeconds, () => this.#updated(batch));
  }

  #wantedAhead(): number {
    const inFlight = this.#count("waits", "written");
    return Math.min((MAX_STALENESS + 1) * BATCH - this.#open.length, this.#writers.length * SLOTS + BATCH - inFlight);
  }

  #wantedAlone(isFull: boolean): number {
    const most = (MAX_STALENESS + 1) * BATCH;
    const surplus = Math.max(0, this.#atStart.complete - BATCH);
    const target = Math.min(Math.max(Math.ceil(OVERSAMPLING * BATCH), this.#atStart.open + BATCH - surplus), most);
    const inFlight = this.#count("waits", "written");
    const ahead = isFull || inFlight > 0 ? 0 : Math.min(most - this.#open.length, this.#count("executed"));
    return Math.min(Math.max(target - this.#open.length, ahead), SLOTS + 8 - inFlight);
  }

  #begin(prompts: number): void {
    for (let i = 0; i < prompts; i++)
      this.#open.push({ number: this.#numbers++, version: this.#version, state: "waits" });
  }

  #send(): void {
    if (this.#engine === "the learner" && this.#isUpdating) return;
    for (const sample of this.#open.filter(({ state }) => state === "waits")) {
      const usable = this.#writers.filter((each) => !each.isSwapping && each.version === this.#version);
      const writer = usable.reduce<Writer | undefined>((a, b) => (a && a.rows <= b.rows ? a : b), undefined);
      if (!writer || writer.rows >= SLOTS) return;
      writer.rows++;
      sample.state = "written";
      sample.version = writer.version;
      const random = uniforms(sample.number, "bench", "generators");
      const between = ([least, most]: readonly [number, number]) => least + random() * (most - least);
      this.#in(between(this.#work.tokens) * TOKEN_SECONDS, () => {
        writer.rows--;
        sample.state = "executed";
        if (writer.isSwapping && writer.rows === 0 && this.#engine === "Longrun") this.#swap(writer);
        this.#in(between(PROGRAM_SECONDS), () => {
          sample.state = "complete";
        });
      });
    }
  }

  #updated(batch: Sample[]): void {
    const lag = batch.reduce((sum, { version }) => sum + this.#version - version, 0) / BATCH;
    this.iterations.push({ at: this.#now, lag });
    this.#version++;
    this.#isUpdating = false;
    this.#open = this.#open.filter((sample) => !batch.includes(sample));
    this.#atStart = { open: this.#open.length, complete: this.#count("complete") };
    for (const writer of this.#writers) {
      if (this.#engine === "the learner") writer.version = this.#version;
      else if (!writer.isSwapping) {
        writer.isSwapping = true;
        if (writer.rows === 0 || this.#engine === "VLLM") this.#swap(writer);
      }
    }
  }

  #swap(writer: Writer): void {
    const version = this.#version;
    this.#in(this.#work.swapSeconds, () => {
      writer.version = version;
      if (version === this.#version) writer.isSwapping = false;
      else this.#swap(writer); // newer weights exist by now
    });
  }

  /** Returns whether a batch can be trained on, and no sample will be trained on past the staleness bound. */
  #isComplete(): boolean {
    if (this.#count("complete") < BATCH) return false;
    const oldest = this.#version - MAX_STALENESS;
    for (let until = Math.max(oldest, 0); until <= this.#version; until++) {
      const old = this.#open.filter(({ version }) => version <= until);
      const complete = old.filter(({ state }) => state === "complete").length;
      const left = old.length - Math.min(complete, BATCH);
      if (complete < old.length && left > (until - oldest) * BATCH) return false;
    }
    return true;
  }
}

async function run(): Promise<BenchResult> {
  const raw = WORKS.flatMap((work) =>
    WRITERS.map((writers) => {
      const simulation = new Simulation(work, writers);
      simulation.run();
      const counted = simulation.iterations.slice(UNCOUNTED);
      const seconds = counted.at(-1)!.at - simulation.iterations[UNCOUNTED - 1]!.at;
      const perIteration = seconds / counted.length;
      return {
        ...{ what: work.what, writers: writers.engine === "the learner" ? 0 : writers.count, engine: writers.engine },
        ...{ secondsPerIteration: perIteration, updateShare: work.updateSeconds / perIteration },
        slotShare: simulation.rowSeconds / (seconds * SLOTS * writers.count),
        meanLag: counted.reduce((sum, { lag }) => sum + lag, 0) / counted.length,
      };
    }),
  );
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const rows = raw.map((each) => ({
    what: each.what,
    generators: each.writers,
    engine: each.engine,
    "s/iteration": each.secondsPerIteration.toFixed(0),
    "the learner steps": percent(each.updateShare),
    "slots in use": percent(each.slotShare),
    "mean lag": each.meanLag.toFixed(2),
  }));
  const method =
    `A simulation of events, nothing is measured. B ${BATCH}, m ${OVERSAMPLING}, maxStaleness ${MAX_STALENESS}, CarryOver under Wait; learner and generators have ${SLOTS} slots and take ` +
    `${TOKEN_SECONDS} s a token; programs take ${PROGRAM_SECONDS.join(" to ")} s and wait for no actor; new weights take ${SWAP_SECONDS} s, of 7B ${LARGE_SWAP_SECONDS} s; ` +
    `${ITERATIONS - UNCOUNTED} iterations after the first ${UNCOUNTED}. Longrun: a generator ends its rows before it takes new weights`;
  return { rows, goals: [], method, raw };
}

export const generators: Bench = { about: "one learner with several generators (a simulation)", run };
