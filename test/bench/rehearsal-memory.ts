/** Compares the memory plan with a run's memory on devices of 24 to 141 GB and in this process: `npm run bench rehearsal -- --memory`. */
import { availableParallelism } from "node:os";
import { CONFIGURATIONS, extrapolated, memoryUse, nameOf, type Use } from "../rehearsal/memory-use.ts";
import { type BenchResult, type Goal, UsageError } from "./result.ts";

const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(2);
const LEAST = 0.9;
const MOST = 1.3;

/** @param depths numbers of layers that are rehearsed; all layers are extrapolated from them: "2,8" */
export async function memory(depths: string): Promise<BenchResult> {
  const [few, more] = depths.split(",").map(Number);
  if (!few || !more || few >= more) throw new UsageError(`--depths: ${depths}; give two numbers of layers such as 2,8`);
  const waiting = [...CONFIGURATIONS.entries()];
  const found: [few: Use, more: Use][] = [];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [i, asked] = next;
      process.stderr.write(`${nameOf(asked)}\n`);
      found[i] = [await memoryUse(asked, few), await memoryUse(asked, more)];
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));

  const rows: BenchResult["rows"] = [];
  const goals: Goal[] = [];
  for (const [i, asked] of CONFIGURATIONS.entries()) {
    const [first, second] = found[i]!;
    const whole = extrapolated(asked, first, second, [few, more]);
    const { plan } = whole;
    const ratios = { gpu: whole.gpu.plan / whole.gpu.peak, host: whole.host.plan / whole.host.peak };
    rows.push({
      ...{ shape: asked.shape, trained: asked.train, compute: asked.compute, "GPU, GB": asked.gigabytes },
      ...{ tokens: `${asked.prompt ?? 1024} + ${asked.response ?? 256}`, generated: asked.generation },
      ...{ together: plan.microBatchTokens / plan.rowTokens, recomputed: plan.checkpointing ? "yes" : "no" },
      ...{ "GPU plan": gigabytes(whole.gpu.plan), "GPU peak": gigabytes(whole.gpu.peak) },
      "GPU ratio": ratios.gpu.toFixed(2),
      ...{ "host plan": gigabytes(whole.host.plan), "host peak": gigabytes(whole.host.peak) },
      "host ratio": ratios.host.toFixed(2),
    });
    for (const [place, ratio] of Object.entries(ratios))
      goals.push({
        ...{ what: `${nameOf(asked)}: plan / peak, ${place}`, goal: `${LEAST} to ${MOST}` },
        ...{ measured: ratio.toFixed(2), met: ratio >= LEAST && ratio <= MOST },
      });
  }
  const method = `ONNX Runtime's CUDA provider over a stand-in for CUDA, bfloat16 files; what all layers take, from ${few} and ${more} of them; GB without what CUDA takes for itself`;
  const raw = CONFIGURATIONS.map((asked, i) => ({ ...asked, depths: [few, more], found: found[i] }));
  return { rows, goals, method, raw, part: "memory" };
}
