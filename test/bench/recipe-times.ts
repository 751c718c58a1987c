/**
 * Simulates how long an iteration of each recipe of `manifests/examples` takes. Collection, store and server are real. The engine and
 * the programs only take time. The engine's time follows from the number of operations and bytes, and from the shares of the data sheet's
 * rates that an H100 reached (README.md, GPU).
 */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseTrainingRun, type TrainingRunSpec } from "../../crds/trainingrun.ts";
import { SHAPES } from "../../learner/engine/model/hollow.fixture.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";
import { planOf, RECIPES, type Recipe } from "../rehearsal/recipes.ts";
import { iterationsOf } from "./overlap-run.ts";
import type { BenchResult } from "./result.ts";
import { type EngineTimes, SCALE, SimulatedEngine } from "./simulated-engine.ts";

/** Share of the memory's rate that a decode step of 3B with LoRA reached on an H100. */
const REACHED = 0.32;
/**
 * A policy step of the same model reached 125e12 operations a second there, which is 37 for each byte of the memory's rate, and 13 % of the
 * data sheet's products. Memory bounds a step, so a GPU with slower memory is slower; none is assumed to reach more than a third of its
 * products.
 */
const OPERATIONS_A_BYTE = 37;
const MOST_OPERATIONS = 1 / 3;
/** Tokens of a prompt; the shortest and the longest response, with lengths spread evenly between them. */
const TOKENS = { prompt: 1000, shortest: 300, longest: 900 };
/** Assumed time of an AdamW step on a weight, with float32 weights and moments in host memory: 10 s for 3B. */
const FULL_STEP_SECONDS = 10 / 3.1e9;

interface Machine {
  /** Bandwidth of one GPU's memory. */
  bytesPerSecond: number;
  /** Rate of one GPU, for bfloat16 products with float32 sums. */
  operationsPerSecond: number;
  /** Mean duration of programs: they take 0.25 to 1.75 times as long. */
  programSeconds: number;
}

const MACHINES: Record<string, Machine> = {
  // RTX 3060
  "laptop-gpu": { bytesPerSecond: 0.36e12, operationsPerSecond: 25e12, programSeconds: 20 },
  // A100 of 80 GB
  "one-gpu": { bytesPerSecond: 2.0e12, operationsPerSecond: 312e12, programSeconds: 20 },
  // A100 of 40 GB
  "eight-gpus": { bytesPerSecond: 1.55e12, operationsPerSecond: 312e12, programSeconds: 60 },
};
const SPREAD = 1.5;

export async function recipeTimes(counts: { iterations: number; uncounted: number }): Promise<BenchResult> {
  const rows: Record<string, string | number>[] = [];
  const raw: unknown[] = [];
  for (const recipe of RECIPES) {
    const { file } = recipe;
    const name = basename(file, ".yaml");
    const machine = MACHINES[name]!;
    const { spec } = parseTrainingRun(readFileSync(join(import.meta.dirname, "../..", file), "utf8"), file);
    const { checkpointing } = planOf(recipe);
    const times = engineTimes(spec, { ...machine, ...recipe, checkpointing });
    const engine = new SimulatedEngine(times);
    const { actors } = spec;
    const { starts, ...counted } = await iterationsOf(
      {
        ...{ engine, algorithm: spec.algorithm, actors: actors.max, slots: actors.slots, ...counts },
        model: { generationBatchSize: times.slots },
        programs: { seconds: machine.programSeconds / SCALE, spread: SPREAD },
      },
      () => engine.count(),
    );
    const total = counted.seconds.reduce((sum, seconds) => sum + seconds, 0);
    const seconds = (SCALE * total) / counted.seconds.length;
    raw.push({ name, machine, checkpointing, times, counted });
    rows.push({
      recipe: name,
      "s a token": times.tokenSeconds.toFixed(4),
      "s an update": times.updateSeconds.toFixed(0),
      "programs at once": actors.max * actors.slots,
      "s an iteration": seconds.toFixed(0),
      "engine busy": `${((100 * engine.busySeconds) / total).toFixed(0)} %`,
      iterations: spec.stopping.iterations,
      hours: ((seconds * spec.stopping.iterations) / 3600).toFixed(1),
    });
  }
  const method =
    `real collection, rollout, store and server, real clients as actors, ${SCALE} times as fast; a simulated engine as fast as 3B with LoRA on an H100 for each byte of its memory's rate: ` +
    `a token reads the weights and the rows' keys and values once, an update has 2 operations for each weight and token in a forward pass and 4 (LoRA) or 6 in a ` +
    `backward pass, 2 more where the plan recomputes layers, and a step of 1e9 weights ${(1e9 * FULL_STEP_SECONDS).toFixed(1)} s besides; prompts of ${TOKENS.prompt} tokens, responses of ${TOKENS.shortest} to ${TOKENS.longest}, twice that with StaticPolicy, which ` +
    `writes each program again; programs of 0.25 to 1.75 times 20 s (eight-gpus: 60 s); evaluations and checkpoints are left out`;
  return { part: "recipes", rows, goals: [], method, raw };
}

/** Returns the engine's times, at `REACHED` of the GPUs' rates. */
function engineTimes(
  { model, algorithm }: TrainingRunSpec,
  on: Machine & Recipe & { checkpointing: boolean },
): EngineTimes {
  const { gpus, bytesPerSecond, operationsPerSecond, shape, checkpointing } = on;
  const config = SHAPES[shape];
  const weights = parameters(config).reduce((sum, each) => sum + elementCount(each.shape), 0);
  const slots = model.generationBatchSize;
  const meanResponse = (TOKENS.shortest + TOKENS.longest) / 2;
  const cacheBytes = 4 * config.layers * config.keyValueHeads * config.headSize * (TOKENS.prompt + meanResponse / 2);
  const stepBytes = 2 * weights + (slots / gpus) * cacheBytes;
  const batch = algorithm.batchSize * (TOKENS.prompt + meanResponse);
  const update = { isFull: model.adaptation.type === "Full", isCritic: algorithm.baseline === "Critic", checkpointing };
  const written = model.instrumenter === "StaticPolicy" ? 2 : 1;
  return {
    slots,
    tokenSeconds: stepBytes / (REACHED * bytesPerSecond),
    shortestTokens: written * TOKENS.shortest,
    longestTokens: written * TOKENS.longest,
    updateSeconds: updateSeconds(weights, batch, { ...update, bytesPerSecond, operationsPerSecond, gpus }),
  };
}

/** Returns the time of an update. @param tokens of the batch's prompts and responses */
export function updateSeconds(
  weights: number,
  tokens: number,
  on: Record<"isFull" | "isCritic" | "checkpointing", boolean> &
    Pick<Machine, "bytesPerSecond" | "operationsPerSecond"> & { gpus: number },
): number {
  const { isFull, isCritic, checkpointing, gpus } = on;
  const rate = gpus * Math.min(OPERATIONS_A_BYTE * on.bytesPerSecond, MOST_OPERATIONS * on.operationsPerSecond);
  // Forward, forward again, backward: products with the inputs, and with the weights if they are trained.
  const step = 2 + (checkpointing ? 2 : 0) + (isFull ? 4 : 2);
  const passes = 2 + 2 + step + (isCritic ? 2 + step : 0); // log-probs of policy and reference, values
  return (passes * weights * tokens) / rate + (isFull ? FULL_STEP_SECONDS * weights : 0);
}
