/**
 * `npm run bench rehearsal`: counts what each phase of a learner requires of a GPU, without one (test/rehearsal). Counts do not depend on
 * the machine. Compares the peak of device memory with the memory plan of the same lengths and batches. `--shapes 3b --train lora --batch 1
 * --prompt 1024 --response 1024` also measures the time to make all sessions of 3B.
 *
 *     npm run bench rehearsal -- [--shapes 0.5b] [--train lora,all] [--compute float32,bfloat16] [--layers N]
 *                                [--batch 8] [--prompt 512] [--response 512]
 *     npm run bench rehearsal -- --memory [--depths 2,8]   # the memory plan at 0.5B, 3B and 7B: rehearsal-memory.ts
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SHAPES, writeHollowModel } from "../../learner/engine/model/hollow.fixture.ts";
import { Planner, type PlanRequest } from "../../learner/engine/plan.ts";
import { ensureRehearsal, rehearsalEnvironment } from "../rehearsal/build.ts";
import { CONFIGURATIONS, type PhaseResult, type Shape } from "../rehearsal/phases.ts";
import type { Placement } from "../rehearsal/placement.ts";
import { ADAPTER } from "./gpu.ts";
import { memory } from "./rehearsal-memory.ts";
import { type Bench, type BenchResult, type Goal, UsageError } from "./result.ts";

interface Asked {
  shape: Shape;
  train: "lora" | "all";
  compute: "float32" | "bfloat16";
}

type Found = { phases: PhaseResult[]; placements: Record<string, Placement> };

const MOST_TO_HOST = 3;
const MOST_TO_DEVICE = 12;
/** Limit for making all sessions of 3B, including the first run of each. */
const MOST_SECONDS = 30;

/** Runs in a process of its own, which has the stand-ins. */
function rehearse(asked: Asked, folder: string): Found {
  const file = path.join(folder, "found.json");
  const script = fileURLToPath(new URL("../rehearsal/phases.ts", import.meta.url));
  const options = {
    ...CONFIGURATIONS[asked.train === "lora" ? "LoRA, float32" : "every weight, float32"],
    compute: asked.compute,
  };
  const { status } = spawnSync(process.execPath, [script, JSON.stringify({ shape: asked.shape, options }), file], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...rehearsalEnvironment(), REHEARSAL_BYTES: "1e12" },
  });
  if (status !== 0) throw new Error(`the rehearsal ended with status ${status}`);
  const found = JSON.parse(readFileSync(file, "utf8"));
  rmSync(file);
  return found;
}

/** Returns the learner's plan for these phases, in bytes on the GPU without CUDA's own memory. */
function planned({ shape, train, compute }: Asked, model: string): number {
  const request: PlanRequest = {
    ...{ model, compute, critic: true, microBatchSize: shape.batch, device: { kind: "cuda", id: 0 } },
    ...{ adapter: train === "lora" ? ADAPTER : undefined, generationBatchSize: shape.batch, samplesPerPrompt: 1 },
    ...{ maxPromptTokens: shape.prompt, maxResponseTokens: shape.response },
  };
  const planner = new Planner(request);
  const plan = planner.plan(shape.batch * planner.longest);
  return plan.rows.filter(({ what }) => what !== "process").reduce((total, { gpuBytes }) => total + gpuBytes, 0);
}

function rowsOf({ train, compute }: Asked, name: string, { phases }: Found): BenchResult["rows"] {
  return phases.map(({ phase, counts: c, firstSeconds }) => ({
    ...{ shape: name, trained: train === "lora" ? "LoRA" : "all", compute, phase },
    ...{ launches: c.launches, products: c.products },
    ...{ "to device": c.toDevice, "MB to": megabytes(c.toDeviceBytes) },
    ...{ "to host": c.toHost, "MB from": megabytes(c.toHostBytes) },
    ...{ "within it": c.onDevice, "MB within": megabytes(c.onDeviceBytes) },
    ...{ synchronisations: c.synchronisations, allocations: c.allocations },
    ...{ "peak, GB": (c.peakBytes / 1e9).toFixed(2), "first time, s": firstSeconds.toFixed(1) },
  }));
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);

function goalsOf(asked: Asked, name: string, { phases, placements }: Found, planBytes: number): Goal[] {
  const about = `${name}, ${asked.train}, ${asked.compute}`;
  const graphs = Object.values(placements);
  const memcpy = graphs.reduce((total, { copies }) => total + copies, 0);
  const others = graphs.flatMap(({ onCpu }) => Object.entries(onCpu)).filter(([node]) => !node.endsWith(" int64"));
  const onCpu = others.reduce((total, [, count]) => total + count, 0);
  const most = (counter: "toHost" | "toDevice") =>
    Math.max(...phases.filter(({ phase }) => phase !== "generation").map(({ counts }) => counts[counter]));
  const peak = Math.max(...phases.map(({ counts }) => counts.peakBytes));
  const goal = (what: string, measured: number, bound: number): Goal => ({
    ...{ what: `${about}: ${what}`, goal: `<= ${bound}`, measured: String(measured), met: measured <= bound },
  });
  const ratio = planBytes / peak;
  const seconds = phases.reduce((total, { firstSeconds }) => total + firstSeconds, 0);
  const all = name === "3b" ? [goal("time to make all sessions of 3B, s", Math.round(seconds), MOST_SECONDS)] : [];
  return [
    ...all,
    goal("nodes on the CPU other than sizes", onCpu, 0),
    goal("Memcpy nodes", memcpy, 0),
    goal("copies to the host, log-probs and steps", most("toHost"), MOST_TO_HOST),
    goal("copies to the device, log-probs and steps", most("toDevice"), MOST_TO_DEVICE),
    {
      ...{ what: `${about}: memory plan / peak`, goal: "0.9 to 1.3", met: ratio >= 0.9 && ratio <= 1.3 },
      measured: `${(planBytes / 1e9).toFixed(2)} / ${(peak / 1e9).toFixed(2)} GB = ${ratio.toFixed(2)}`,
    },
  ];
}

type Measured = Omit<Asked, "shape"> & Found & { shape: string; layers: number };

/** If LoRA was measured in both formats: bfloat16 must launch fewer kernels of a policy step than float32. */
function launchGoals(raw: readonly Measured[]): Goal[] {
  const launches = (of: Measured) => of.phases.find(({ phase }) => phase === "policy step")!.counts.launches;
  return raw.flatMap((narrow) => {
    const wide = raw.find(
      ({ shape, train, compute }) => shape === narrow.shape && train === "lora" && compute === "float32",
    );
    if (narrow.train !== "lora" || narrow.compute !== "bfloat16" || !wide) return [];
    const [measured, bound] = [launches(narrow), launches(wide)];
    const what = `${narrow.shape}, lora: launches of a policy step in bfloat16, below those of float32`;
    return [{ what, goal: `< ${bound}`, measured: String(measured), met: measured < bound }];
  });
}

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      shapes: { type: "string", default: "0.5b" },
      train: { type: "string", default: "lora,all" },
      compute: { type: "string", default: "float32,bfloat16" },
      layers: { type: "string" },
      batch: { type: "string", default: "8" },
      prompt: { type: "string", default: "512" },
      response: { type: "string", default: "512" },
      memory: { type: "boolean", default: false },
      depths: { type: "string", default: "2,8" },
    },
  });
  const { batch, prompt, response } = values;
  await ensureRehearsal((line) => process.stderr.write(`${line}\n`));
  if (values.memory) return memory(values.depths);
  const rows: BenchResult["rows"] = [];
  const goals: Goal[] = [];
  const raw: Measured[] = [];
  for (const name of values.shapes.split(",")) {
    const whole = SHAPES[name as keyof typeof SHAPES];
    if (!whole) throw new UsageError(`--shapes: there is no ${name}; there are ${Object.keys(SHAPES).join(", ")}`);
    const config = { ...whole, layers: Number(values.layers ?? whole.layers) };
    const shape = { config, batch: Number(batch), prompt: Number(prompt), response: Number(response) };
    for (const train of values.train.split(",") as Asked["train"][])
      for (const compute of values.compute.split(",") as Asked["compute"][]) {
        const asked = { shape, train, compute };
        const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-rehearsal-"));
        try {
          writeHollowModel(folder, config);
          const found = rehearse(asked, folder);
          rows.push(...rowsOf(asked, name, found));
          goals.push(...goalsOf(asked, name, found, planned(asked, folder)));
          raw.push({ shape: name, layers: config.layers, train, compute, ...found });
        } finally {
          await rm(folder, { recursive: true });
        }
      }
  }
  goals.push(...launchGoals(raw));
  const method = `ONNX Runtime's CUDA provider over a stand-in for CUDA, bfloat16 files, ${batch} x ${prompt} + ${response} tokens, 64 of them generated; the second time, the first makes sessions`;
  return { rows, goals, method, raw };
}

export const rehearsal: Bench = { about: "each phase's work for a GPU, counted without one", run };
