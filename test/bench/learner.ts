/**
 * `npm run bench learner`: compares the learner with PyTorch and transformers on this machine, row by row.
 *
 *     npm run bench learner -- [--rows update,load-3b] [--sides packed,trimmed] [--rounds 5] [--threads N] [--short]
 *
 * Updates: all sides are processes that wait for their turn. A round is one update of each, and the ratio compares the medians.
 * `--sides`: only peers whose names contain one of these words. `--short`: two rounds, fewer sequences and tokens; shows that a row works,
 * and its result is not kept.
 */
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Asked } from "./asked.ts";
import { peerPython } from "./peers.ts";
import { finished } from "./processes.ts";
import lengths from "./quickstart-lengths.json" with { type: "json" };
import { type Bench, type BenchResult, type Goal, median, UsageError } from "./result.ts";
import { type Work, writeWork } from "./update-work.ts";

interface Options {
  rounds: number;
  threads: number;
  short: boolean;
  /** Peers of updates, by a part of their name; empty: all. */
  sides: string[];
}
type Found = Pick<BenchResult, "rows" | "goals" | "raw">;
type Row = (options: Options) => Promise<Found>;

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
/** The main thread serves actors and probes during a step. */
const BLOCKED_MILLISECONDS = 50;
/** Largest difference between losses and gradient norms of all sides, before their first step. */
const AGREEMENT = 1e-3;

interface Update {
  seconds: number;
  criticSeconds: number;
  policySeconds: number;
  cpuSeconds: number;
  peakBytes: number;
  blockedMilliseconds?: number;
  /** Limit in CPU time: a longer wait is caused by other processes. */
  mainThreadMilliseconds?: number;
  losses: number[];
}

/** The sides of a row of updates: `[]` is longrun, others are flags of update_torch.py. */
type Sides = Record<string, string[]>;
const OURS = "longrun";
const EAGER: Sides = { "PyTorch padded": ["--mode", "padded"], "PyTorch packed": ["--mode", "packed"] };

/** @param least for each side, the least ratio of its seconds to longrun's */
function updates(work: (short: boolean) => Work, sides: Sides, least: Record<string, number>): Row {
  return async ({ rounds, threads, short, sides: wanted }) => {
    const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-update-"));
    const started = new Map<string, Asked<Update>>();
    try {
      const { tokens, parameters } = writeWork(folder, work(short));
      const shared = ["--folder", folder, "--threads", String(threads)];
      started.set(OURS, await Asked.start(OURS, process.execPath, [here("./update.ts"), ...shared]));
      const python = await peerPython();
      const chosen = Object.entries(sides).filter(
        ([name]) => wanted.length === 0 || wanted.some((word) => name.includes(word)),
      );
      for (const [name, flags] of chosen)
        started.set(name, await Asked.start(name, python, [here("./update_torch.py"), ...shared, ...flags]));

      const first = new Map<string, Update>(); // makes sessions, compiles
      for (const [name, side] of started) first.set(name, await side.ask());
      for (const [name, { losses }] of first) agree(name, losses, first.get(OURS)!.losses);
      const measured = new Map<string, Update[]>([...started.keys()].map((name) => [name, []]));
      for (let round = 0; round < rounds; round++)
        for (const [name, side] of started) measured.get(name)!.push(await side.ask());
      return compare({ measured, first, tokens, parameters, least });
    } finally {
      for (const side of started.values()) side.close();
      await rm(folder, { recursive: true });
    }
  };
}

/** @throws Error unless both sides did the same work */
function agree(name: string, losses: number[], ours: number[]): void {
  for (const [i, loss] of losses.entries()) {
    const difference = Math.abs(loss - ours[i]!) / Math.max(1e-3, Math.abs(ours[i]!));
    if (!(difference <= AGREEMENT))
      throw new Error(`${name} does other work: critic and policy loss and norm are ${losses}, ours ${ours}`);
  }
}

function compare(o: {
  measured: Map<string, Update[]>;
  first: Map<string, Update>;
  tokens: number;
  parameters: number;
  least: Record<string, number>;
}): Found {
  const of = (name: string, field: Exclude<keyof Update, "losses">) =>
    median(o.measured.get(name)!.map((update) => update[field] ?? 0));
  const peak = (name: string) => Math.max(...o.measured.get(name)!.map(({ peakBytes }) => peakBytes));
  const ratio = (name: string) => of(name, "seconds") / of(OURS, "seconds");
  const rows = [...o.measured.keys()].map((name) => ({
    side: name,
    seconds: of(name, "seconds").toFixed(3),
    critic: of(name, "criticSeconds").toFixed(3),
    policy: of(name, "policySeconds").toFixed(3),
    "CPU seconds": of(name, "cpuSeconds").toFixed(3),
    "tokens/s": Math.round(o.tokens / of(name, "seconds")),
    "first, s": o.first.get(name)!.seconds.toFixed(1),
    "peak MB": Math.round(peak(name) / 1e6),
    ratio: name === OURS ? "" : `${ratio(name).toFixed(2)}x`,
  }));
  const what = `update, ${(o.parameters / 1e6).toFixed(1)}M parameters, ${o.tokens} tokens`;
  const goals: Goal[] = Object.entries(o.least)
    .filter(([name]) => o.measured.has(name))
    .map(([name, goal]) => ({
      what: `${what}, beside ${name}`,
      goal: `>= ${goal}x`,
      measured: `${ratio(name).toFixed(2)}x`,
      met: ratio(name) >= goal,
    }));
  const eager = [...o.measured.keys()].filter((name) => name !== OURS && !name.includes("compile"));
  const lowest = Math.min(...eager.map(peak));
  if (eager.length > 0)
    goals.push({
      what: `${what}, peak resident memory beside PyTorch's lowest`,
      goal: "<= 1x",
      measured: `${Math.round(peak(OURS) / 1e6)} of ${Math.round(lowest / 1e6)} MB, ${(peak(OURS) / lowest).toFixed(2)}x`,
      met: peak(OURS) <= lowest,
    });
  const blocked = Math.max(...o.measured.get(OURS)!.map(({ blockedMilliseconds = 0 }) => blockedMilliseconds));
  goals.push({
    what: `${what}, longest wait of the main thread`,
    goal: `<= ${BLOCKED_MILLISECONDS} ms`,
    measured: `${blocked.toFixed(0)} ms, and ${of(OURS, "mainThreadMilliseconds").toFixed(0)} ms of CPU in a whole update`,
    met: blocked <= BLOCKED_MILLISECONDS,
  });
  return { rows, goals, raw: { first: Object.fromEntries(o.first), measured: Object.fromEntries(o.measured) } };
}

/** `longrun  1234 tokens/s, 1200 tokens per CPU second`. */
const SPEED = /(\d+) tokens\/s, (\d+) tokens per CPU second/;

function generation(batch: number, least: number): Row {
  return async ({ rounds, threads, short }) => {
    const flags = ["--rows", String(batch), "--distinct", String(batch), "--threads", String(threads)];
    flags.push("--repeats", short ? "1" : "3", "--new", short ? "32" : "160");
    const python = await peerPython();
    const speeds: Record<string, number[]> = { [OURS]: [], transformers: [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, file, program] of [
        [OURS, process.execPath, "./generate.ts"],
        ["transformers", python, "./generate_hf.py"],
      ] as const) {
        const { stdout } = await finished(file, [here(program), ...flags]);
        speeds[name]!.push(Number(SPEED.exec(stdout)![1]));
      }
    }
    const ratio = median(speeds[OURS]!) / median(speeds.transformers!);
    return {
      rows: Object.entries(speeds).map(([side, found]) => ({ side, "tokens/s": Math.round(median(found)) })),
      goals: [
        {
          what: `generation, batch ${batch}, beside transformers generate with sampling`,
          goal: `>= ${least}x`,
          measured: `${ratio.toFixed(2)}x`,
          met: ratio >= least,
        },
      ],
      raw: speeds,
    };
  };
}

/** Memory of a whole LoRA update of Qwen2.5-0.5B's shape, without a peer. */
const lora: Row = async ({ threads, short }) => {
  const [batch, tokens] = short ? [1, 64] : [4, 512];
  const { stdout } = await finished(process.execPath, [
    ...[here("./lora-memory.ts"), "--shape", short ? "80m" : "0.5b", "--dtype", "BF16", "--threads", String(threads)],
    ...["--batch", String(batch), "--tokens", String(tokens), "--new-tokens", "16"],
  ]);
  const { peaksMiB, ...facts } = JSON.parse(stdout.trim().split("\n").at(-1)!) as {
    peaksMiB: Record<string, { pss: number; anonymous: number; seconds: number }>;
  };
  const highest = Math.max(...Object.values(peaksMiB).map(({ pss }) => pss)) * 1.048576e-3;
  return {
    rows: Object.entries(peaksMiB).map(([side, { pss, anonymous, seconds }]) => ({
      ...{ side, seconds, "peak MB": Math.round(pss * 1.048576), anonymous: Math.round(anonymous * 1.048576) },
    })),
    goals: [
      {
        what: `LoRA on the ${short ? "80M" : "0.5B"} shape, batch ${batch} x ${tokens}, highest proportional set size`,
        ...{ goal: "<= 12 GB", measured: `${highest.toFixed(2)} GB`, met: highest <= 12 },
      },
    ],
    raw: { facts, peaksMiB },
  };
};

/** Parses load.ts: `opened  +12 MB = 0.01 of the weights; highest +13 MB = 0.01 of the weights (...), 0.1 s`. */
const LOADED = /^(.+?) +\+.* = ([\d.]+) of the weights; highest \+(.*) MB = ([\d.]+) \(.*\), ([\d.]+) s/gm;

/** Reads a folder of Qwen2.5-3B's shape: opens it, and uses its weights once. */
const load: Row = async ({ short }) => {
  const shape = short ? "0.5b" : "3b";
  const { stdout } = await finished(process.execPath, [here("./load.ts"), "--shape", shape, "--dtype", "BF16"]);
  const steps = [...stdout.matchAll(LOADED)].map(([, what, end, megabytes, highest, seconds]) => ({
    ...{ what: what!.trim(), end: Number(end), highest: Number(highest) },
    ...{ megabytes: Number(megabytes), seconds: Number(seconds) },
  }));
  const loaded = steps[1]!; // opened, and all weights read to score three tokens
  return {
    rows: steps.map(({ what, seconds, megabytes, highest }) => ({
      ...{ side: what, seconds, "peak MB": megabytes, ratio: `${highest.toFixed(2)} of the file` },
    })),
    goals: [
      {
        what: `loading a ${shape} folder and scoring three tokens, resident memory over the file's size`,
        ...{ goal: "<= 1.1x", measured: `${loaded.highest.toFixed(2)}x`, met: loaded.highest <= 1.1 },
      },
    ],
    raw: steps,
  };
};

const full = (size: Work["size"], sequences: number) => (short: boolean) => ({
  ...{ size, maxPromptTokens: 128, maxResponseTokens: 128 },
  lengths: new Array(short ? 2 : sequences).fill([128, 128]) as Work["lengths"],
});
const real = (short: boolean): Work => ({
  ...{ size: "quickstart", maxPromptTokens: lengths.maxPromptTokens, maxResponseTokens: lengths.maxResponseTokens },
  lengths: lengths.samples.slice(0, short ? 4 : undefined) as Work["lengths"],
  sharedPromptTokens: lengths.sharedPromptTokens,
});
const TRIMMED = ["--mode", "trimmed"];
const whole: Sides = { "PyTorch eager": TRIMMED, "torch.compile": [...TRIMMED, "--compile"] };

const ROWS: Record<string, { about: string; run: Row }> = {
  update: {
    about: "PPO update on two batches of the quickstart",
    run: updates(
      real,
      {
        ...EAGER,
        "PyTorch trimmed": TRIMMED,
        "torch.compile padded": [...EAGER["PyTorch padded"]!, "--compile"],
      },
      { "PyTorch padded": 1.5, "PyTorch packed": 1, "PyTorch trimmed": 1 },
    ),
  },
  "full-3.4m": {
    about: "PPO update, 3.4M parameters, 16 x 256 tokens",
    run: updates(full("3.4m", 16), whole, { "PyTorch eager": 1 }),
  },
  "full-27m": {
    about: "PPO update, 28M parameters, 8 x 256 tokens",
    run: updates(full("27m", 8), whole, { "PyTorch eager": 1 }),
  },
  "generation-16": { about: "generation of 16 rows", run: generation(16, 3) },
  "generation-64": { about: "generation of 64 rows", run: generation(64, 3) },
  "lora-0.5b": { about: "memory of a LoRA update, 0.5B shape, 4 x 512 tokens", run: lora },
  "load-3b": { about: "memory of loading a 3B shape", run: load },
};

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      rows: { type: "string" },
      sides: { type: "string", default: "" },
      rounds: { type: "string" },
      threads: { type: "string", default: String(os.availableParallelism()) },
      short: { type: "boolean", default: false },
    },
  });
  const names = values.rows?.split(",") ?? Object.keys(ROWS);
  const unknown = names.filter((name) => !Object.hasOwn(ROWS, name));
  if (unknown.length > 0) {
    const list = Object.entries(ROWS).map(([name, { about }]) => `  ${name.padEnd(15)}${about}`);
    throw new UsageError(`--rows: there is no ${unknown.join(", ")}; there are\n${list.join("\n")}`);
  }
  const { short } = values;
  const options = {
    short,
    sides: values.sides.split(",").filter(Boolean),
    rounds: Number(values.rounds ?? (short ? 2 : 5)),
    threads: Number(values.threads),
  };
  const found: [string, Found][] = [];
  for (const name of names) {
    process.stderr.write(`${name}: ${ROWS[name]!.about}\n`);
    found.push([name, await ROWS[name]!.run(options)]);
  }
  const load = os.loadavg()[0]!;
  return {
    rows: found.flatMap(([name, { rows }]) => rows.map((row) => ({ row: name, ...row }))),
    goals: found.flatMap(([, { goals }]) => goals),
    method: `${options.threads} threads, ${options.rounds} rounds in turn, medians; losses and gradient norms agree to ${AGREEMENT}; load average at the end ${load.toFixed(1)}`,
    raw: { options, ...Object.fromEntries(found.map(([name, { raw }]) => [name, raw])) },
    kept: !short,
    ...(values.rows !== undefined && { part: names.join("-") }),
  };
}

export const learner: Bench = { about: "the learner beside PyTorch and transformers, row by row (half an hour)", run };
