/**
 * `npm run test:rehearsal -- --plans [--missing]`: rehearses every entry of learner/engine/plans.md that fits, and writes plans.json.
 * `--missing` keeps the peaks that plans.json has.
 *
 * Three things make it affordable:
 * - A GPU is rehearsed for as many sequences of a pass and for a placement. How many GPUs there are changes only the slots and the moments
 *   that each holds, and the plan has their bytes exactly: they are subtracted. memory.rehearsal.ts runs some entries on all of their GPUs.
 * - Peaks of each phase grow by the same bytes with each layer: two depths are rehearsed, and the line is drawn to all layers. For WHOLE
 *   all layers are rehearsed, too.
 * - Weights are hollow in host memory, too (hollow.mjs).
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { startEngine } from "../../learner/engine/engine.ts";
import { Fitting, fits, GPU_GIGABYTES, gpus, LORA } from "../../learner/engine/fit.ts";
import { GPU_COUNTS } from "../../learner/engine/gpu-table.ts";
import { SHAPES, writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import { CUDA_BYTES, type MemoryPlan, type PlanRequest } from "../../learner/engine/plan.ts";
import { COMPUTE } from "../../learner/engine-options.ts";
import { criticStep, policyStep, samples } from "../bench/gpu.ts";
import { rehearsalEnvironment } from "./build.ts";
import { counting } from "./counts.ts";
import { endWith } from "./phases.ts";

type Shape = keyof typeof SHAPES;
const TRAINED = ["LoRA", "every weight"] as const;

/** The work of one GPU, for any number of GPUs. */
export interface Passes extends Pick<MemoryPlan, "checkpointing" | "offloads" | "swaps"> {
  shape: Shape;
  trained: (typeof TRAINED)[number];
  /** Number of the longest sequences in a pass. */
  sequences: number;
}

/** Highest bytes of device memory by number of layers, then by phase. */
export type Peaks = Record<string, Record<string, number>>;

/** An entry of the table, with the peak of its rehearsal. */
export interface Entry extends Pick<Passes, "shape" | "trained"> {
  gigabytes: number;
  gpus: number;
  passes: string;
  /** Bytes of each GPU, as in the table. */
  plan: number;
  /** Bytes, without the bytes of CUDA itself, which a rehearsal lacks. */
  peak: number;
  /** plan / peak, both without CUDA. */
  ratio: number;
}

const FILE = path.join(import.meta.dirname, "plans.json");
interface Kept {
  date: string;
  peaks: Record<string, Peaks>;
  entries: Entry[];
}
const readKept = (): Kept => JSON.parse(readFileSync(FILE, "utf8"));

/**
 * The rehearsed numbers of layers. Where layers are recomputed and all graphs keep their memory, the first layers take more than later ones:
 * the line goes through the two deepest.
 */
const depthsOf = ({ checkpointing, swaps }: Passes): readonly number[] =>
  checkpointing && !swaps ? [2, 4, 6] : [2, 4];
/** Passes that are also rehearsed with all layers, by `nameOf`, which then count: the line is up to a quarter too high where pieces fit badly. */
const WHOLE = [
  "0.5b, LoRA, 2 sequences",
  "0.5b, every weight, 8 sequences",
  "3b, LoRA, 1 sequence, in turn",
  "3b, LoRA, 2 sequences",
  "1.5b, every weight, 1 sequence, in turn",
  "3b, every weight, 2 sequences, recomputed, in turn",
];
/** The fewest layers of a model in the table. */
const WHOLE_DEPTH = 24;
/** Least plan / peak. Below 1 a planned run may fail. */
const LEAST_RATIO = 1;
/** Above it a plan would waste GPUs. */
const MOST_RATIO = 1.2;

// the table's adapter, the default of `longrun model info --plan`
const TOKENS = 1024;
const SLOTS = 64;
const REQUEST = {
  ...{ maxPromptTokens: TOKENS, maxResponseTokens: TOKENS, generationBatchSize: SLOTS, samplesPerPrompt: 1 },
  ...{ critic: true, microBatchSize: 8, compute: "bfloat16" as const },
};
/** More than any entry takes: whether a peak fits a GPU is computed afterwards. */
const DEVICE_BYTES = 1e12;
/** A few tokens after the prompts are enough, because slots have room for all tokens from the beginning. */
const FEW_TOKENS = 16;

export const nameOf = ({ shape, trained, sequences, checkpointing, offloads, swaps }: Passes): string =>
  [
    ...[shape, trained, `${sequences} sequence${sequences > 1 ? "s" : ""}`],
    ...[checkpointing && "recomputed", swaps ? "in turn" : offloads && "offloaded"].filter(Boolean),
  ].join(", ");

const requestOf = (shape: Shape, trained: Passes["trained"], count: number): PlanRequest => ({
  ...{ ...REQUEST, model: path.join(import.meta.dirname, "../fixtures/qwen2.5", shape.toUpperCase()) },
  ...{ devices: gpus(count), device: gpus(1)[0]!, adapter: trained === "LoRA" ? LORA : undefined },
});

type Planned = Pick<Entry, "shape" | "trained" | "gigabytes" | "gpus"> & { whole: MemoryPlan; passes: Passes };

/** Returns the plans of all entries that fit. */
function* fitting(): Generator<Planned> {
  for (const shape of Object.keys(SHAPES) as Shape[]) {
    let like: Fitting | undefined;
    for (const trained of TRAINED)
      for (const gigabytes of GPU_GIGABYTES) {
        const budget = { host: undefined, gpu: { bytes: gigabytes * 1e9, source: "given" } };
        const found = new Fitting(0, budget, "Auto", like);
        like = found;
        for (const count of GPU_COUNTS) {
          const whole = found.best(requestOf(shape, trained, count));
          if (!fits(whole, budget)) continue;
          const { checkpointing, offloads, swaps, microBatchTokens, rowTokens } = whole;
          const passes = { shape, trained, sequences: microBatchTokens / rowTokens, checkpointing, offloads, swaps };
          yield { shape, trained, gigabytes, gpus: count, whole, passes };
        }
      }
  }
}

/** Returns the bytes of slots and moments that a single GPU holds beyond the bytes of each of these GPUs. */
function divided({ rows, offloads }: MemoryPlan, gpus: number): number {
  const [cache, optimiser] = ["cache", "optimiser"].map((name) => rows.find(({ what }) => what === name)!);
  return cache!.gpuBytes * (gpus - 1) + (offloads ? 0 : optimiser!.hostBytes * (1 - 1 / gpus));
}

/** Returns the peak with this many layers, as rehearsed, else on the line through two depths of each phase. */
function peakAt(peaks: Peaks, layers: number): number {
  return peaks[layers] ? Math.max(...Object.values(peaks[layers])) : onLine(peaks, layers);
}

function onLine(peaks: Peaks, layers: number): number {
  const [a, b] = Object.keys(peaks)
    .map(Number)
    .filter((depth) => depth < WHOLE_DEPTH)
    .slice(-2) as [number, number];
  const [few, more] = [peaks[a]!, peaks[b]!];
  return Math.max(...Object.keys(few).map((p) => few[p]! + ((layers - a) * (more[p]! - few[p]!)) / (b - a)));
}

/** Rehearses passes of one GPU with this many layers. */
async function rehearse(passes: Passes, layers: number): Promise<Record<string, number>> {
  const model = mkdtempSync(path.join(os.tmpdir(), "longrun-plans-"));
  const config = { ...SHAPES[passes.shape], layers };
  writeHollowModel(model, config);
  endWith(model, config.vocabSize - 1); // every response has the longest length
  const { sequences, checkpointing, trained, offloads, swaps } = passes;
  const tokens = 2 * TOKENS;
  const found: Record<string, number> = {};
  const phase = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
    const { result, counts } = await counting(act);
    found[name] = Math.max(found[name] ?? 0, counts.peakBytes);
    return result;
  };
  const engine = await startEngine({
    ...{ model, device: gpus(1)[0]!, adapter: trained === "LoRA" ? LORA : undefined, threads: 1, critic: true },
    ...{ slots: SLOTS, positions: tokens, microBatchTokens: sequences * tokens, rowTokens: tokens, workers: 1 },
    ...{ offloads, swaps, activationCheckpointing: checkpointing ? "Always" : "Never", compute: COMPUTE.BFloat16 },
  });
  try {
    const prompts = samples(config, SLOTS, TOKENS, 1).map(({ prompt }) => prompt);
    const options = { seeds: prompts.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens: FEW_TOKENS };
    const batch = [
      ...samples(config, sequences, 1, tokens - 1), // a response fills the row
      ...samples(config, sequences, TOKENS >> 1, TOKENS >> 2),
    ];
    // the second time the reference differs, and each session has its arena
    for (let time = 0; time < 2; time++) {
      await phase("generation", () => engine.generate(prompts, options));
      await engine.initializeCritic(0);
      await phase("log-probs", () => engine.evaluate(batch, { temperature: 1, values: true }));
      await phase("critic step", () => criticStep(engine, batch));
      await phase("policy step", () => policyStep(engine, batch));
    }
    return found;
  } finally {
    await engine.close();
    rmSync(model, { recursive: true });
  }
}

/** Rehearses the missing passes of one shape; writes plans.json after each. */
async function rehearseShape(shape: Shape): Promise<void> {
  const kept = readKept();
  for (const passes of JSON.parse(process.env.PASSES!) as Passes[]) {
    const name = nameOf(passes);
    const depths = [...depthsOf(passes), ...(WHOLE.includes(name) ? [SHAPES[shape].layers] : [])];
    for (const depth of depths) {
      if (kept.peaks[name]?.[depth]) continue;
      const [start, before] = [performance.now(), process.cpuUsage()];
      const found = await rehearse(passes, depth);
      const { user, system } = process.cpuUsage(before);
      kept.peaks[name] = { ...kept.peaks[name], [depth]: found };
      writeFileSync(FILE, `${JSON.stringify(kept, null, 2)}\n`);
      const seconds = `${((performance.now() - start) / 1000).toFixed(0)} s, ${((user + system) / 1e6).toFixed(1)} s of CPU`;
      process.stdout.write(
        `${name}, ${depth} layers: ${(Math.max(...Object.values(found)) / 1e9).toFixed(2)} GB (${seconds})\n`,
      );
    }
  }
}

/** Returns an entry with the kept peak. */
function entryOf({ peaks }: Kept, { whole, passes, ...entry }: Planned): Entry {
  const alone = peakAt(peaks[nameOf(passes)]!, SHAPES[entry.shape].layers);
  const peak = Math.round(alone - divided(whole, entry.gpus));
  const plan = Math.round(whole.gpuBytes);
  return { ...entry, passes: nameOf(passes), plan, peak, ratio: Number(((plan - CUDA_BYTES) / peak).toFixed(3)) };
}

/** Rehearses all entries that fit. Returns the exit status. */
export function rehearsePlans(keep: boolean): number {
  const table = [...fitting()];
  const empty: Kept = { date: "", peaks: {}, entries: [] };
  const kept = keep && existsSync(FILE) ? readKept() : empty;
  kept.date = new Date().toISOString().slice(0, 10);
  writeFileSync(FILE, `${JSON.stringify(kept, null, 2)}\n`);
  for (const shape of Object.keys(SHAPES) as Shape[]) {
    const own = new Map(table.flatMap(({ passes }) => (passes.shape === shape ? [[nameOf(passes), passes]] : [])));
    const environment = rehearsalEnvironment();
    const preload = `${environment.NODE_OPTIONS} --import=${path.join(import.meta.dirname, "hollow.mjs")}`;
    const given = { PASSES: JSON.stringify([...own.values()]), REHEARSAL_BYTES: String(DEVICE_BYTES) };
    const env = { ...process.env, ...environment, NODE_OPTIONS: preload, ...given };
    const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), shape], { stdio: "inherit", env });
    if (status !== 0) return 1;
  }
  const done = readKept();
  done.entries = table.map((planned) => entryOf(done, planned));
  writeFileSync(FILE, `${JSON.stringify(done, null, 2)}\n`);
  return report(done);
}

/** Prints entries with a wrong ratio, and the least, median and highest ratio. Returns the exit status. */
function report({ entries, peaks }: Kept): number {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  const wrong = entries.filter((entry) => !isGood(entry));
  for (const { shape, trained, gigabytes, gpus, passes, plan, peak, ratio } of wrong)
    say(
      `${shape}, ${trained}, ${gpus} x ${gigabytes} GB (${passes}): plan ${gb(plan)}, peak ${gb(peak)}, ratio ${ratio}`,
    );
  for (const name of WHOLE) {
    const { layers } = SHAPES[name.split(",")[0] as Shape];
    const all = Math.max(...Object.values(peaks[name]![layers]!));
    say(`${name}: all ${layers} layers ${gb(all)}, on the line ${gb(onLine(peaks[name]!, layers))}`);
  }
  const ratios = entries.map(({ ratio }) => ratio).sort((a, b) => a - b);
  say(`${ratios.length} entries: plan / peak ${ratios[0]}, ${ratios[ratios.length >> 1]}, ${ratios.at(-1)}`);
  return wrong.length > 0 ? 1 : 0;
}

const gb = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;

const isGood = ({ ratio, peak, gigabytes }: Entry): boolean =>
  ratio >= LEAST_RATIO && ratio <= MOST_RATIO && peak + CUDA_BYTES <= gigabytes * 1e9;

if (import.meta.main) {
  await rehearseShape(process.argv[2] as Shape);
  process.exit(0);
}
