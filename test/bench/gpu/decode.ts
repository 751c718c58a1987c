/**
 * Milliseconds of a token of generation in 64 slots, with and without CUDA graphs, beside the least time that the device's memory allows:
 * every weight and every filled position of the cache is read once. Weights are zeros, which are read as fast as others.
 */
import { startEngine } from "../../../learner/engine/engine.ts";
import type { ModelConfig } from "../../../learner/engine/model/config.ts";
import { writeHollowModel } from "../../../learner/engine/model/hollow.fixture.ts";
import { elementCount, parameters } from "../../../learner/engine/model/weights.ts";
import { CUDA_GRAPHS } from "../../../learner/engine/runtime/capture.ts";
import { median } from "../result.ts";
import { modelName, peakBandwidth } from "./device.ts";
import { type Finding, findingsOf, type PartOptions } from "./part.ts";
import { ADAPTER, formatsOf, MODELS, samples } from "./work.ts";

interface Work {
  models: readonly [name: string, config: ModelConfig][];
  slots: number;
  prompt: number;
  /** Tokens of a response, few and many; their difference is measured. */
  few: number;
  many: number;
  rounds: number;
}

const WORK: Work = {
  models: [
    ["3b", MODELS["3b"]],
    ["0.5b", MODELS["0.5b"]],
  ],
  ...{ slots: 64, prompt: 512, few: 32, many: 160, rounds: 3 },
};
const SMALL_WORK: Work = {
  models: [["quickstart", MODELS.quickstart]],
  ...{ slots: 4, prompt: 16, few: 4, many: 8, rounds: 1 },
};
/** Bytes of a weight and of a number in the cache, on a GPU. */
const HALF_BYTES = 2;

export async function* decode(options: PartOptions): AsyncGenerator<Finding> {
  const { device, small, folder } = options;
  const work = small ? SMALL_WORK : WORK;
  const bandwidth = peakBandwidth(modelName(device));
  yield {
    notes: [
      `LoRA of rank ${ADAPTER.rank}, ${work.slots} slots, prompts of ${work.prompt} tokens, each of its own; ${work.many} tokens less ${work.few}, median of ${work.rounds}`,
      ...(bandwidth === undefined ? ["no least time: the device's bandwidth is not in test/bench/gpu/device.ts"] : []),
    ],
  };
  const before = process.env[CUDA_GRAPHS];
  for (const [name, config] of work.models) {
    writeHollowModel(folder, config);
    for (const graphs of device.kind === "cuda" ? ["on", "off"] : ["off"])
      yield* findingsOf(`${name}, CUDA graphs ${graphs}: decode`, async function* () {
        if (graphs === "off") process.env[CUDA_GRAPHS] = "off"; // the engine's threads read it
        try {
          yield await measured(options, work, { name, config, graphs, bandwidth });
        } finally {
          if (before === undefined) delete process.env[CUDA_GRAPHS];
          else process.env[CUDA_GRAPHS] = before;
        }
      });
  }
}

interface Case {
  name: string;
  config: ModelConfig;
  graphs: string;
  /** Bytes per second by the data sheet. */
  bandwidth: number | undefined;
}

async function measured({ device, folder }: PartOptions, work: Work, its: Case): Promise<Finding> {
  const { slots, prompt, few, many } = work;
  const batch = samples(its.config, slots, prompt, 1);
  const engine = await startEngine({
    ...{ model: folder, device, threads: 0, adapter: ADAPTER, slots, positions: prompt + many },
    compute: formatsOf(device).includes("bfloat16") ? "bfloat16" : "float32",
  });
  try {
    const seconds = async (maxNewTokens: number) => {
      const start = performance.now();
      const seeds = batch.map((_, i) => i);
      const prompts = batch.map((sample) => sample.prompt);
      await engine.generate(prompts, { seeds, temperature: 1, topP: 1, maxNewTokens, eosIds: [] });
      return (performance.now() - start) / 1000;
    };
    await seconds(few); // makes sessions, and records graphs
    const rounds: { few: number; many: number }[] = [];
    for (let round = 0; round < work.rounds; round++)
      rounds.push({ few: await seconds(few), many: await seconds(many) });
    const milliseconds = (1000 * median(rounds.map((round) => round.many - round.few))) / (many - few);
    const least = its.bandwidth && (1000 * bytesOf(its.config, work)) / its.bandwidth;
    return {
      rows: [
        {
          ...{ shape: its.name, slots, "CUDA graphs": its.graphs, "ms/token": milliseconds.toFixed(3) },
          "tokens/s": Math.round((1000 * slots) / milliseconds),
          ...(least && { "least ms": least.toFixed(3), share: `${((100 * least) / milliseconds).toFixed(0)} %` }),
          "prompts and first tokens, s": median(rounds.map((round) => round.few)).toFixed(3),
        },
      ],
      raw: { shape: its.name, graphs: its.graphs, rounds },
    };
  } finally {
    await engine.close();
  }
}

/** Returns the bytes that a token of all slots must read: the weights but an untied embedding, and the cache at its mean length. */
function bytesOf(config: ModelConfig, { slots, prompt, few, many }: Work): number {
  const size = parameters(config).reduce((total, { shape }) => total + elementCount(shape), 0);
  const weights = size - (config.tied ? 0 : config.vocabSize * config.hiddenSize);
  const cache = 2 * config.layers * config.keyValueHeads * config.headSize * slots * (prompt + (few + many) / 2);
  return HALF_BYTES * (weights + cache);
}
