/**
 * `npm run bench gpu`: the engine on a GPU, in five parts that take at most 14 minutes together:
 *
 * | part | what |
 * | --- | --- |
 * | `parity` | log-probs, both steps and generation against the CPU, in float32, bfloat16 and TF32 (gpu/parity.ts) |
 * | `counts` | nodes by operator and provider, beside the rehearsal's (gpu/counts.ts) |
 * | `decode` | a token of 64 slots, with and without CUDA graphs, beside the memory's least time (gpu/decode.ts) |
 * | `speed` | tokens per second, FLOP utilisation, in turn with PyTorch and transformers (gpu/speed.ts) |
 * | `memory` | an iteration of 3B with LoRA: the plan beside the device's memory (gpu/memory.ts) |
 *
 *     npm run bench gpu [-- --device cuda:0] [--parts parity,decode]
 *
 * Each part runs in a process of its own, has a budget (gpu/part.ts), and its result is written before the next part starts.
 * With `--device cpu` the same calls are made on the CPU, with small shapes. For the rehearsal (../rehearsal): `--small` takes small
 * shapes on a GPU, too; `--results FOLDER` writes results there. Without it nothing is written on a CPU or in a rehearsal, where
 * nothing is computed.
 */
import { parseArgs } from "node:util";
import { deviceName, parseDevice } from "../../learner/engine/runtime/device.ts";
import { memoryUsed, modelName, REHEARSED } from "./gpu/device.ts";
import { BUDGET_SECONDS, type PartName, runPart, SMALL_BUDGET_SECONDS } from "./gpu/part.ts";
import { type Bench, type BenchResult, type Goal, UsageError } from "./result.ts";

export { ADAPTER, criticStep, policyStep, type Sample, samples } from "./gpu/work.ts";

const PARTS = Object.keys(BUDGET_SECONDS) as PartName[];

async function* run(flags: string[]): AsyncGenerator<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      device: { type: "string", default: "cuda:0" },
      small: { type: "boolean", default: false },
      parts: { type: "string", default: PARTS.join() },
      results: { type: "string" },
    },
  });
  const device = parseDevice(values.device);
  if (device === "auto") throw new UsageError("--device is auto; give cuda:N or cpu");
  const parts = values.parts.split(",") as PartName[];
  const unknown = parts.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new UsageError(`--parts has ${unknown}; give some of ${PARTS.join()}`);
  const small = values.small || device.kind === "cpu";
  const kept = values.results !== undefined || (device.kind === "cuda" && !REHEARSED);
  const place = `${deviceName(device)}, ${modelName(device)}${REHEARSED && device.kind === "cuda" ? ": nothing was computed" : ""}`;
  for (const part of parts) {
    const budgetSeconds = small ? SMALL_BUDGET_SECONDS : BUDGET_SECONDS[part];
    const { findings, ending } = await runPart(part, { device, usedBytes: memoryUsed(device), small }, budgetSeconds);
    const ended: Goal = {
      ...{ what: `${part} runs to its end`, goal: `within ${budgetSeconds} s` },
      ...{ measured: ending.text, met: ending.whole },
    };
    yield {
      ...{ part, kept, folder: values.results },
      rows: findings.flatMap(({ rows = [] }) => rows),
      goals: [...findings.flatMap(({ goals = [] }) => goals), ended],
      method: [place, ...findings.flatMap(({ notes = [] }) => notes)].join("; "),
      raw: findings.flatMap(({ raw }) => (raw === undefined ? [] : [raw])),
    };
  }
}

export const gpu: Bench = { about: "the engine on a GPU: parity with the CPU, counts, speed, memory", run };
