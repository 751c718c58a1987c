import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { requestOf } from "../engine-options.ts";
import { gpuMemory, hostMemory, leastGpuMemory } from "./available-memory.ts";
import { type Budget, checkLengths, fitRun, planTable, size } from "./fit.ts";
import { boundDims } from "./graph/memory.ts";
import { decoderDims, decoderFeeds } from "./model/decoder.ts";
import { readConfig } from "./model/folder.ts";
import { isMultiplied } from "./model/halved.ts";
import { SHAPES, writeHollowModel } from "./model/hollow.fixture.ts";
import { PROJECTIONS } from "./model/lora.ts";
import { elementCount, parameters } from "./model/weights.ts";
import { Planner, type PlanRequest } from "./plan.ts";
import { instrumenterShape } from "./plan-generation.ts";
import { BLOCK_NUMBERS } from "./runtime/buffer.ts";

const GB = 1e9;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "plan-"));
after(() => fs.rmSync(folder, { recursive: true }));
const SMALL = {
  ...SHAPES["0.5b"],
  ...{ vocabSize: 2048, hiddenSize: 128, intermediateSize: 384, layers: 4, heads: 4, headSize: 32 },
};
function model(name: keyof typeof SHAPES | "small", dtype?: "F32" | "BF16"): string {
  const at = path.join(folder, `${name}-${dtype}`);
  if (!fs.existsSync(at)) writeHollowModel(at, name === "small" ? SMALL : SHAPES[name], dtype);
  return at;
}
const LORA = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 };
/** A manifest's defaults. */
const PAPER = {
  ...{ adapter: undefined, critic: true, device: { kind: "cpu" } as const },
  ...{ maxPromptTokens: 1024, maxResponseTokens: 1024, microBatchSize: 8 },
  ...{ generationBatchSize: 64, samplesPerPrompt: 1 },
};
const small = (change: Partial<PlanRequest> = {}): PlanRequest => ({ ...PAPER, model: model("small"), ...change });
const host = (bytes: number): Budget => ({ host: { bytes, source: "free on this machine" }, gpu: undefined });
const bytesOf = ({ rows }: { rows: { what: string; hostBytes: number }[] }, what: string) =>
  rows.find((row) => row.what === what)!.hostBytes;

test("the plan counts float32 weights, gradients and moments of policy and critic, and the reference's weights", () => {
  const count = parameters(SMALL).reduce((total, { shape }) => total + elementCount(shape), 0);
  const head = SMALL.hiddenSize + 1;
  const plan = new Planner(small()).plan(512);
  assert.equal(bytesOf(plan, "weights"), 4 * (3 * count + head)); // generation reads them where they are
  assert.equal(bytesOf(new Planner(small()).plan(512, 3), "weights"), 4 * (3 * count + head));
  assert.equal(bytesOf(plan, "gradients"), 4 * (count + head)); // of the larger one, as they take turns
  assert.equal(bytesOf(new Planner(small()).plan(512, 2), "gradients"), 2 * 4 * (count + head));
  assert.equal(bytesOf(plan, "optimiser"), 8 * (2 * count + head));
  const alone = new Planner(small({ critic: false })).plan(512);
  assert.equal(bytesOf(alone, "optimiser"), 8 * count);
  assert.equal(
    plan.hostBytes,
    plan.rows.reduce((total, row) => total + row.hostBytes, 0),
  );
  assert.equal(plan.gpuBytes, 0);
});

test("the plan has a KV cache that is large enough for instrumented programs", () => {
  const instrumenter = { promptTokens: 2048, responseTokens: 2048 };
  const cache = (change: Partial<PlanRequest>) => bytesOf(new Planner(small(change)).plan(512), "cache");
  for (const [change, rows] of [
    [{}, 32],
    [{ samplesPerPrompt: 8 }, 32], // each slot has its prompt's keys and values
    [{ maxPromptTokens: 4096, maxResponseTokens: 4096 }, 64], // no more than there are
  ] as const) {
    assert.equal(instrumenterShape({ ...PAPER, ...change }, instrumenter).rows, rows);
    assert.equal(cache({ ...change, instrumenter }), cache(change));
  }
  // Generation has two slots at least.
  assert.equal(instrumenterShape({ ...PAPER, generationBatchSize: 3 }, instrumenter).rows, 1);
  assert.equal(cache({ generationBatchSize: 3, instrumenter }), (4 / 3) * cache({ generationBatchSize: 3 }));
  assert.equal(cache({ generationBatchSize: 1 }), cache({ generationBatchSize: 2 }));
  assert.equal(cache({ generationBatchSize: 1, instrumenter }), 2 * cache({ generationBatchSize: 1 }), "one at least");
  const alone = small({
    generationBatchSize: 1,
    critic: false,
    instrumenter: { promptTokens: 2e5, responseTokens: 2e5 },
  });
  assert.throws(() => fitRun(alone, 1, host(2 * GB)), /cache .*, model\.instrumenter: Syntax\)/);
  const manifest = (change: object) =>
    parseTrainingRun(
      stringify({
        ...{ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "x" } },
        spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart", ...change } },
      }),
      "a.yaml",
    ).spec;
  const asked = (change: object) => requestOf(manifest(change), model("small"), { kind: "cpu" }).instrumenter;
  assert.equal(asked({}), undefined);
  const limits = { instrumenter: "StaticPolicy", instrumenterMaxPromptTokens: 700, instrumenterMaxResponseTokens: 900 };
  assert.deepEqual(asked(limits), { promptTokens: 700, responseTokens: 900 });
});

test("a GPU holds weights, one gradient and moments; the host holds copies for checkpoints", () => {
  const count = parameters(SMALL).reduce((total, { shape }) => total + elementCount(shape), 0);
  const head = SMALL.hiddenSize + 1;
  const plan = new Planner(small({ device: { kind: "cuda", id: 0 } })).plan(512);
  const trained = 4 * (2 * count + head);
  const [weights, gradients, optimiser] = ["weights", "gradients", "optimiser"].map(
    (what) => plan.rows.find((row) => row.what === what)!,
  );
  assert.equal(weights!.hostBytes, trained + 4 * count);
  assert.equal(weights!.gpuBytes - weights!.hostBytes, 2 * count, "bfloat16 copies of the policy");
  const instrumenter = { promptTokens: 64, responseTokens: 64 };
  const instrumented = new Planner(small({ device: { kind: "cuda", id: 0 }, instrumenter })).plan(512);
  const both = instrumented.rows.find(({ what }) => what === "weights")!;
  assert.equal(both.gpuBytes - both.hostBytes, 4 * count, "and of the reference, which instruments");
  assert.deepEqual([gradients!.hostBytes, gradients!.gpuBytes], [0, 4 * (count + head)]);
  assert.equal(optimiser!.hostBytes, 2 * trained);
  const withoutCritic = new Planner(small({ device: { kind: "cuda", id: 0 }, critic: false })).plan(512);
  const [, , ofPolicy] = withoutCritic.rows.filter(({ what }) => ["weights", "gradients", "optimiser"].includes(what));
  assert.equal(optimiser!.gpuBytes - ofPolicy!.gpuBytes, 8 * (count + head));
  const block = optimiser!.gpuBytes - 2 * trained;
  assert.ok(block > 4 * 8 * BLOCK_NUMBERS && block < 16 * 8 * BLOCK_NUMBERS, `${block}: some float64 of a block`);
});

test("a GPU holds the KV cache in bfloat16: slots times the longest sequence, with or without shared prompts", () => {
  const cacheOf = (change: Partial<PlanRequest>) =>
    new Planner(small({ device: { kind: "cuda", id: 0 }, ...change }))
      .plan(512)
      .rows.find(({ what }) => what === "cache")!;
  const token = 4 * SMALL.layers * SMALL.keyValueHeads * SMALL.headSize;
  const { hostBytes, gpuBytes } = cacheOf({});
  assert.deepEqual([hostBytes, gpuBytes], [0, 64 * 2048 * token]);
  assert.equal(cacheOf({ samplesPerPrompt: 8 }).gpuBytes, gpuBytes);
  assert.equal(bytesOf(new Planner(small()).plan(512), "cache"), 2 * gpuBytes, "float32 on a CPU");
});

test("each session on a GPU has an arena of its own, which is larger than the activations on a CPU", () => {
  const run = new Planner(small());
  const lengths = { sequences: 1, promptTokens: 1024, responseTokens: 1024 };
  const held = (kind: "cpu" | "cuda") =>
    run.graphs.map((_, i) => run.pass(kind, i, lengths)).map(({ activations, logits }) => activations + logits);
  const [here, there] = [held("cpu"), held("cuda")];
  for (const [i, bytes] of there.entries()) assert.ok(bytes > here[i]! && bytes < 3 * here[i]!, `${bytes}, ${here[i]}`);
  const plan = new Planner(small({ device: { kind: "cuda", id: 0 } })).plan(2048);
  const activations = plan.rows.find(({ what }) => what === "activations")!.gpuBytes;
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
  assert.ok(activations > 0.5 * sum(there) && activations < sum(there));
  const one = bytesOf(new Planner(small({ device: { kind: "cuda", id: 0 }, critic: false })).plan(2048), "process");
  assert.ok(bytesOf(plan, "process") > 1.05 * one, "the sessions of a critic");
});

test("LoRA counts the model once and trains the adapters", () => {
  const plan = new Planner(small({ adapter: { ...LORA, rank: 2 } })).plan(512);
  const file = fs.statSync(path.join(model("small"), "model.safetensors")).size;
  const weights = bytesOf(plan, "weights");
  assert.ok(weights > file && weights < 1.6 * file, `${weights} of ${file}`);
  assert.ok(bytesOf(plan, "optimiser") < bytesOf(new Planner(small()).plan(512), "optimiser") / 3);
});

test("the plan computes the dims of feeds without making them, so long sequences take no longer", () => {
  const { graphs, blocks, model: adapted } = new Planner(small());
  const ids = (length: number) => Int32Array.from({ length }, (_, i) => i % SMALL.vocabSize);
  for (const [sequences, promptTokens, responseTokens] of [
    [1, 1, 1],
    [2, 16, 33],
    [3, 64, 64],
    [1, 2100, 1],
  ] as const) {
    const same = { prompt: ids(promptTokens), responses: [ids(responseTokens)] };
    const feeds = decoderFeeds(new Array(sequences).fill(same), adapted.config, blocks);
    const distinct = Math.min(SMALL.vocabSize, Math.max(promptTokens, responseTokens - 1)); // no last one is read
    const dims = decoderDims({ sequences, promptTokens, responseTokens }, distinct, blocks);
    for (const { graph } of graphs) assert.deepEqual(dims, { ...dims, ...boundDims(graph, feeds) });
  }
  const started = performance.now();
  const plan = new Planner(small({ maxPromptTokens: 1e6, maxResponseTokens: 1e6 })).plan(512);
  assert.ok(performance.now() - started < 20_000); // a mask alone would have 1e12 numbers
  assert.ok(bytesOf(plan, "activations") > 4e12);
});

test("a layer holds one block of attention scores, so activations do not grow with the square of a length", () => {
  const step = (length: number) => {
    const run = new Planner(small({ maxPromptTokens: length / 2, maxResponseTokens: length / 2 }));
    return run.pass("cpu", 0, { sequences: 1, promptTokens: length / 2, responseTokens: length / 2 }).activations;
  };
  assert.ok(step(16_384) < 4.5 * step(4096), `${step(4096)} and ${step(16_384)}`);
});

test("activations and logits grow with the tokens of a pass; the KV cache grows with rows and lengths", () => {
  const one = new Planner(small()).plan(2048);
  const four = new Planner(small()).plan(4 * 2048);
  const grown = bytesOf(four, "activations") / bytesOf(one, "activations");
  assert.ok(grown > 3.2 && grown < 4.1, `${grown}`);
  assert.ok(bytesOf(four, "logits") > 3 * bytesOf(one, "logits"));
  const half = new Planner(small({ generationBatchSize: 32 })).plan(2048);
  assert.equal(2 * bytesOf(half, "cache"), bytesOf(one, "cache"));
  const short = new Planner(small({ maxResponseTokens: 256 })).plan(2048);
  assert.equal(bytesOf(short, "cache") / bytesOf(one, "cache"), 1280 / 2048);
});

test("a pass has 512 tokens a thread, or as many as fit", () => {
  const lengths = { maxPromptTokens: 64, maxResponseTokens: 64, generationBatchSize: 1 };
  const frozen = { ...lengths, adapter: { rank: 4, alpha: 4, targets: PROJECTIONS, seed: 0 } };
  const together = fitRun(small(frozen), 4, host(64 * GB));
  assert.deepEqual([together.ranks, together.microBatchTokens], [1, 2048]);
  const room = fitRun(small(lengths), 4, host(64 * GB));
  assert.deepEqual([room.ranks, room.microBatchTokens], [4, 512]);
  const tight = fitRun(small(lengths), 4, host(room.hostBytes - 1));
  assert.deepEqual([tight.ranks, tight.microBatchTokens], [4, 256]);
  assert.ok(tight.hostBytes < room.hostBytes);
});

test("threads share one pass where one pass for each thread does not fit", () => {
  const apart = fitRun(small(), 4, host(64 * GB), "Never");
  assert.equal(apart.ranks, 4);
  const together = fitRun(small(), 4, host(apart.hostBytes - 1), "Never");
  assert.equal(together.ranks, 1);
  assert.ok(bytesOf(together, "activations") < bytesOf(apart, "activations") / 3.9);
  assert.ok(4 * bytesOf(together, "gradients") === bytesOf(apart, "gradients"));
});

test("layers are recomputed where a single sequence does not fit otherwise", () => {
  const kept = fitRun(small(), 1, host(64 * GB));
  assert.equal(kept.checkpointing, false);
  const recomputed = fitRun(small(), 1, host(kept.hostBytes - 1));
  assert.equal(recomputed.checkpointing, true);
  assert.ok(bytesOf(recomputed, "activations") < 0.7 * bytesOf(kept, "activations"));
  assert.deepEqual(fitRun(small(), 1, host(64 * GB), "Always"), recomputed);
});

describe("a run that does not fit is refused in one line with the largest parts and the settings of each", () => {
  const gpu = { ...host(64 * GB), gpu: { bytes: 1 * GB, source: "free on cuda:0" } };
  const onGpu = { device: { kind: "cuda", id: 0 } } as const;
  const lengths = "model.maxPromptTokens, model.maxResponseTokens";
  const full = "(model.adaptation.type: LoRA, algorithm.baseline: GRPO or RLOO)";
  const cases: [what: string, change: Partial<PlanRequest>, budget: Budget, parts: string[]][] = [
    ["generation", {}, host(0.5 * GB), [`cache SIZE (model.generationBatchSize, ${lengths})`]],
    ["every weight", { generationBatchSize: 1 }, host(1e6), [`weights SIZE ${full}`]],
    [
      "without a critic",
      { critic: false, generationBatchSize: 1 },
      host(1e6),
      ["weights SIZE (model.adaptation.type: LoRA)"],
    ],
    [
      "a GPU",
      onGpu,
      gpu,
      [
        `cache SIZE (model.generationBatchSize, ${lengths})`,
        `activations SIZE (learner.activationCheckpointing: Auto, ${lengths})`,
        "process SIZE (no setting)",
      ],
    ],
    [
      "LoRA",
      {
        model: model("0.5b"),
        adapter: { ...LORA, rank: 512 },
        critic: false,
        maxPromptTokens: 16,
        maxResponseTokens: 16,
      },
      host(1e6),
      ["weights SIZE (model.policy)", "optimiser SIZE (model.adaptation.rank)"],
    ],
  ];
  for (const [what, change, budget, parts] of cases)
    test(what, () => {
      const request = small(change);
      const refusal = ({ code, message }: Error & { code: string }) => {
        assert.equal(code, "memory");
        const [need, said] = message.split("; the largest parts, and the settings of each: ");
        const on = budget.gpu ? "memory on cuda:0" : "memory";
        const there = budget.gpu ?? budget.host!;
        assert.equal(
          need!.replace(/[\d.]+ [MG]B/, "SIZE"),
          `the run needs about SIZE of ${on}, but ${size(there.bytes)} is ${there.source}`,
        );
        const plan = new Planner(request).plan(2048, 1, { swaps: budget.gpu !== undefined });
        for (const part of parts) {
          const name = part.split(" ")[0];
          const row = plan.rows.find((row) => row.what === name)!;
          assert.ok(
            said!.split("; ").includes(part.replace("SIZE", size(row[budget.gpu ? "gpuBytes" : "hostBytes"]))),
            `${part} in ${said}`,
          );
        }
        assert.doesNotMatch(message, /\n/);
        return true;
      };
      assert.throws(() => fitRun(request, 1, budget, "Never"), refusal);
    });
  test("a refusal names the largest part first, at most four parts, and checkpointing only where it is off", () => {
    assert.throws(
      () => fitRun(small({ generationBatchSize: 512 }), 1, host(1 * GB)),
      ({ message }: Error) => {
        assert.match(message, /each: cache [^;]*(; [^;]*){3}; it fits with model.generationBatchSize: 64$/);
        return !message.includes("activationCheckpointing");
      },
    );
  });
});

const gpus = (count: number) => Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }) as const);

test("an offloaded run has rounded weights and a gradient on each GPU, and float32 weights and moments on the host", () => {
  const count = (kept: (name: string) => boolean) =>
    parameters(SMALL).reduce((total, { name, shape }) => total + (kept(name) ? elementCount(shape) : 0), 0);
  const [all, matrices] = [count(() => true), count(isMultiplied)];
  const [head, block] = [SMALL.hiddenSize + 1, 4 * BLOCK_NUMBERS];
  for (const number of [1, 4]) {
    const devices = gpus(number);
    const planner = new Planner(small({ device: devices[0]!, devices, compute: "bfloat16" }));
    const rows = (swaps: boolean) => planner.plan(4096, number, { offloads: true, swaps }).rows;
    const [, weights, gradients, optimiser] = rows(false);
    const near = (found: number, expected: number) => assert.ok(Math.abs(found / expected - 1) < 0.01, `${found}`);
    near(weights!.gpuBytes, 3 * (2 * matrices + 4 * (all - matrices) + block));
    near(rows(true)[1]!.gpuBytes, 2 * matrices + 4 * (all - matrices) + block);
    assert.equal(weights!.hostBytes, 4 * (3 * all + head));
    near(gradients!.gpuBytes, 4 * all + 2 * matrices);
    assert.equal(optimiser!.hostBytes, 8 * (2 * all + head));
    assert.ok(optimiser!.gpuBytes < 20 * block, "blocks alone");
    assert.ok(rows(true)[4]!.gpuBytes < rows(false)[4]!.gpuBytes, "graphs have their memory in turn, too");
  }
});

for (const [count, gigabytes] of [
  [8, 40],
  [2, 80],
] as const)
  test(`every weight of 3B fits ${count} x ${gigabytes} GB in bfloat16 with prompts and responses of 1,024 tokens`, () => {
    const devices = gpus(count);
    const request = { ...PAPER, model: model("3b", "BF16"), microBatchSize: 2, device: devices[0]!, devices };
    const budget = { host: undefined, gpu: { bytes: gigabytes * GB, source: "given" } };
    const plan = fitRun({ ...request, compute: "bfloat16" }, 0, budget, "Always");
    assert.ok(plan.gpuBytes <= gigabytes * GB);
    assert.equal(plan.swaps, gigabytes === 40, "policy, reference and critic are there in turn");
    assert.equal(plan.microBatchTokens, 2 * 2048, "two sequences at a time");
    const said = plan.swaps ? /weights .*on a GPU in bfloat16, one at a time$/m : /weights .*on a GPU in bfloat16$/m;
    assert.match(planTable(plan, budget).join("\n"), said);
  });

test("a run of 7B with LoRA on 4 x 24 GB is refused, because its rehearsed peak is above 24 GB", () => {
  const devices = gpus(4);
  const request = { ...PAPER, model: model("7b", "BF16"), device: devices[0]!, devices, adapter: LORA };
  const budget = { host: undefined, gpu: { bytes: 24 * GB, source: "given" } };
  assert.throws(() => fitRun({ ...request, compute: "bfloat16" }, 0, budget), /it fits with/);
});

test("two fully trained 3B models do not fit on a GPU of 80 GB, but two LoRA adapters do", () => {
  const gpu = { host: { bytes: 500 * GB, source: "given" }, gpu: { bytes: 79 * GB, source: "free on cuda:0" } };
  const request = {
    ...{ ...PAPER, model: model("3b"), device: { kind: "cuda", id: 0 } as const },
    ...{ maxPromptTokens: 256, maxResponseTokens: 256, generationBatchSize: 16 },
  };
  assert.ok(new Planner(request).plan(512).gpuBytes > 79 * GB);
  const plan = fitRun({ ...request, microBatchSize: 1, adapter: LORA }, 0, gpu);
  const frozen = plan.rows.find(({ what }) => what === "weights")!;
  assert.ok(frozen.gpuBytes > 6.1 * GB && frozen.gpuBytes < 7 * GB, `${frozen.gpuBytes}: the model is there once`);
  assert.ok(frozen.hostBytes < 1 * GB, `${frozen.hostBytes}: adapters alone`);
  assert.ok(plan.gpuBytes <= 79 * GB, `${plan.gpuBytes}`);
  const lines = planTable(plan, gpu);
  assert.match(lines[0]!, /^memory plan: on cuda:0 [\d.]+ GB of 79\.0 GB free on cuda:0; here /);
  assert.equal(lines.length, 1 + plan.rows.length);
});

const DEVICES = (count: number) => Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }) as const);

test("each of several GPUs has the weights, a gradient, and a part of the moments and of the slots", () => {
  const onGpus = (count: number, change: Partial<PlanRequest> = {}) => {
    const [device] = DEVICES(1);
    const plan = new Planner(small({ device: device!, devices: DEVICES(count), ...change })).plan(2048);
    return { plan, of: (what: string) => plan.rows.find((row) => row.what === what)! };
  };
  const [one, four] = [onGpus(1), onGpus(4)];
  assert.equal(four.plan.ranks, 4);
  for (const what of ["weights", "activations"]) assert.deepEqual(four.of(what), one.of(what));
  assert.equal(four.of("gradients").gpuBytes, one.of("gradients").gpuBytes);
  assert.equal(one.of("gradients").hostBytes, 0);
  assert.equal(four.of("gradients").hostBytes, one.of("gradients").gpuBytes + 4 * 4 * BLOCK_NUMBERS);
  assert.equal(four.of("cache").gpuBytes, one.of("cache").gpuBytes / 4);
  assert.match(four.of("cache").detail, /^keys and values of 16 x 2048 tokens$/);
  const [whole, part] = [one.of("optimiser"), four.of("optimiser")];
  assert.equal(part.hostBytes, whole.hostBytes);
  assert.equal(whole.gpuBytes - part.gpuBytes, (3 / 4) * whole.hostBytes);
  assert.ok(four.of("process").hostBytes > one.of("process").hostBytes);
  const budget = { host: undefined, gpu: { bytes: 40 * GB, source: "given" } };
  assert.match(
    planTable(four.plan, budget)[0]!,
    /^memory plan: on each of cuda:0,1,2,3 [\d.]+ [GM]B of 40\.0 GB given; here /,
  );
});

test("a refusal names changes that make the run fit, such as the smallest sufficient number of GPUs", () => {
  const [device] = DEVICES(1);
  const request = small({ device: device!, maxPromptTokens: 256, maxResponseTokens: 256, generationBatchSize: 512 });
  const needs = (change: Partial<PlanRequest>) =>
    new Planner({ ...request, checkpointing: true, ...change }).plan(512, undefined, { swaps: !change.adapter })
      .gpuBytes;
  const refused = (bytes: number, change: Partial<PlanRequest> = {}) => {
    const budget = { host: undefined, gpu: { bytes, source: "given" } };
    try {
      fitRun({ ...request, ...change }, 1, budget);
    } catch (error) {
      return (error as Error).message.split("; it fits with ")[1];
    }
    return "not refused";
  };
  assert.ok(
    needs({}) > needs({ devices: DEVICES(2) }) && needs({ devices: DEVICES(2) }) > needs({ devices: DEVICES(4) }),
  );
  assert.match(
    refused(needs({}) - 1)!,
    /^2 GPUs like this, or with 1 GPU of 24 GB, or with algorithm.baseline: GRPO, or with model.generationBatchSize: 256$/,
  );
  assert.match(refused(needs({ devices: DEVICES(2) }) - 1)!, /^4 GPUs like this/);
  assert.equal(refused(1e6), "1 GPU of 24 GB");
  const shorter = {
    maxPromptTokens: 1024,
    maxResponseTokens: 1024,
    generationBatchSize: 4,
    critic: false,
    adapter: LORA,
  };
  const bytes = needs({ ...shorter, maxPromptTokens: 512, maxResponseTokens: 512 });
  const remedy = "model.maxPromptTokens: 512 and model.maxResponseTokens: 512";
  assert.equal(refused(bytes, shorter), `1 GPU of 24 GB, or with ${remedy}`);
  const all = needs({ ...shorter, maxPromptTokens: 256, maxResponseTokens: 256 });
  const together = `model.generationBatchSize: 4 with model.maxPromptTokens: 256 and model.maxResponseTokens: 256`;
  assert.match(
    refused(all, { ...shorter, generationBatchSize: 64 })!,
    new RegExp(`, or with ${together}$`),
    "together",
  );
});

test("the available memory is the container's limit or the free memory, whichever is less", () => {
  const machine = { limitBytes: 0, freeBytes: 5 * GB, nvidiaSmi: () => "81000\n" };
  assert.deepEqual(hostMemory(machine), { bytes: 5 * GB, source: "free on this machine" });
  assert.equal(hostMemory({ ...machine, limitBytes: 2 * GB }).source, "the container's limit");
  assert.equal(hostMemory({ ...machine, limitBytes: 2 ** 63 }).bytes, 5 * GB);
  const asked: string[][] = [];
  const smi = { ...machine, nvidiaSmi: (args: string[]) => String(asked.push(args) && 81000) };
  assert.deepEqual(gpuMemory({ kind: "cuda", id: 1 }, smi), { bytes: 81000 * 2 ** 20, source: "free on cuda:1" });
  assert.ok(asked[0]!.includes("--id=1"));
  const none = () => {
    throw new Error("ENOENT");
  };
  assert.equal(gpuMemory({ kind: "cuda", id: 0 }, { ...machine, nvidiaSmi: none }), undefined);
  const free: Record<string, number> = { "--id=0": 81000, "--id=1": 40000, "--id=2": 81000 };
  const each = { ...machine, nvidiaSmi: (args: string[]) => String(free[args.at(-1)!]) };
  assert.deepEqual(leastGpuMemory(DEVICES(3), each), { bytes: 40000 * 2 ** 20, source: "free on cuda:1" });
  assert.equal(leastGpuMemory(DEVICES(4), each), undefined, "of one it is not known");
});

describe("lengths that exceed the model's context are refused", () => {
  for (const [maxPromptTokens, maxResponseTokens, positions, remedy] of [
    [600, 500, 1000, "model.maxResponseTokens to 400 or less, or model.maxPromptTokens to 500 or less"],
    [985, 500, 1000, "model.maxPromptTokens to 500 or less"], // 15 tokens are fewer than a manifest may give
    [100, 1024, 1024, "model.maxResponseTokens to 924 or less"],
    [1024, 1024, 1024, "both lower, to 1024 together or less"],
  ] as const) {
    test(`a prompt of ${maxPromptTokens} and a response of ${maxResponseTokens} exceed ${positions} positions`, () => {
      const message =
        `model.maxPromptTokens and model.maxResponseTokens are ${maxPromptTokens} + ${maxResponseTokens} tokens, but ` +
        `model.policy has ${positions} positions (max_position_embeddings): set ${remedy}`;
      const lengths = { maxPromptTokens, maxResponseTokens };
      assert.throws(() => checkLengths(lengths, positions), { name: "ModelError", message });
      checkLengths(lengths, maxPromptTokens + maxResponseTokens);
    });
  }
});

test("the manifests' lengths fit into the bundled policy's context", () => {
  const root = path.join(import.meta.dirname, "../..");
  const { maxPositions } = readConfig(path.join(root, "manifests/quickstart/policy"));
  const runs = fs
    .globSync("manifests/{examples,quickstart}/*.yaml", { cwd: root })
    .flatMap((file) => parseAllDocuments(fs.readFileSync(path.join(root, file), "utf8")))
    .map((document) => document.toJS())
    .filter(({ kind, spec }) => kind === "TrainingRun" && spec.model.policy === "quickstart");
  assert.ok(runs.length >= 9, `${runs.length} runs`);
  for (const run of runs) checkLengths(parseTrainingRun(stringify(run), run.metadata.name).spec.model, maxPositions);
});
