/**
 * Compares the costs of rows with one prompt with the costs of as many rows with different prompts: time to the first token, and memory.
 *
 *     node test/bench/group.ts [--rows 8,64] [--prompt 1000] [--new 64] [--threads 2] [--size quickstart|large]
 *
 * The time to the first token is the time of a whole call for one token, with existing sessions. CPU seconds are comparable even on a
 * shared machine. Memory is the highest growth of the resident set during the call for `--new` tokens, read every 10 ms from another
 * thread. Each row of the table is a process of its own, and weights are random.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { parseArgs } from "node:util";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { parseConfig } from "../../learner/engine/model/config.ts";
import { Generator } from "../../learner/engine/model/generate.ts";
import { initialWeights } from "../../learner/engine/model/weights.ts";

const { values } = parseArgs({
  args: isMainThread ? process.argv.slice(2) : (workerData as string[]),
  options: {
    rows: { type: "string", default: "8,64" },
    prompt: { type: "string", default: "1000" },
    new: { type: "string", default: "64" },
    threads: { type: "string", default: "2" },
    size: { type: "string", default: "quickstart" },
    distinct: { type: "string" }, // one measurement, in a process of its own
  },
});
const [hidden, intermediate, layers, heads, vocabulary] = {
  quickstart: [128, 384, 4, 4, 2048],
  large: [512, 1536, 8, 8, 8192],
}[values.size]!;
const config = parseConfig({
  ...{ model_type: "qwen2", vocab_size: vocabulary, hidden_size: hidden, intermediate_size: intermediate },
  ...{ num_hidden_layers: layers, num_attention_heads: heads, num_key_value_heads: 2, tie_word_embeddings: true },
});

const residentMegabytes = () => {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(fs.readFileSync("/proc/self/status", "utf8"))![1];
  return (Number(kilobytes) * 1024) / 1e6;
};

/** Runs in a worker, because ONNX Runtime blocks the thread that calls it. */
async function work(): Promise<void> {
  const weights = initialWeights(config, 1);
  const generator = new Generator(config, { threads: Number(values.threads) });
  const prompts = Array.from({ length: Number(values.rows) }, (_, row) =>
    Int32Array.from(
      { length: Number(values.prompt) },
      (_, i) => ((row % Number(values.distinct)) * 31 + i * 7) % vocabulary,
    ),
  );
  const call = async (rows: Int32Array[], maxNewTokens: number) => {
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    const options = { seeds: rows.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens, eosIds: [] };
    await generator.generate(weights, rows, options);
    const { user, system } = process.cpuUsage(cpu);
    return { wall: (performance.now() - start) / 1000, cpu: (user + system) / 1e6 };
  };
  await call([Int32Array.of(1, 2, 3)], 1); // makes the sessions
  parentPort!.postMessage("begin");
  const first = await call(prompts, 1);
  const whole = await call(prompts, Number(values.new));
  parentPort!.postMessage({ first, whole });
}

async function measure() {
  let [before, highest] = [0, 0];
  const timer = setInterval(() => {
    highest = Math.max(highest, residentMegabytes());
  }, 10);
  const worker = new Worker(import.meta.filename, { workerData: process.argv.slice(2) });
  const found = await new Promise<object>((resolve, reject) =>
    worker.on("error", reject).on("message", (message) => {
      if (message !== "begin") return resolve(message);
      before = residentMegabytes();
      highest = before;
    }),
  );
  clearInterval(timer);
  process.stdout.write(JSON.stringify({ ...found, megabytes: highest - before }));
  process.exit(0);
}

if (!isMainThread) await work();
else if (values.distinct !== undefined) await measure();
else {
  for (const rows of values.rows.split(",")) {
    for (const distinct of ["1", rows]) {
      const flags = [...process.argv.slice(2), "--rows", rows, "--distinct", distinct];
      const { first, whole, megabytes } = JSON.parse(
        execFileSync(process.execPath, [import.meta.filename, ...flags], { encoding: "utf8" }),
      );
      const what = `${rows} rows of ${distinct === "1" ? "one prompt" : `${rows} prompts`}`;
      const tokens = Number(rows) * Number(values.new);
      console.log(
        `${what.padEnd(24)}first token after ${first.wall.toFixed(2)} s (CPU ${first.cpu.toFixed(2)} s), ${(tokens / whole.cpu).toFixed(0)} ` +
          `tokens per CPU second in all, memory +${megabytes.toFixed(0)} MB`,
      );
    }
  }
}
