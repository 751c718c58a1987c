/** Tests the parts that a memory plan counts. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { requestOf } from "../engine-options.ts";
import { fitRun, planTable } from "./fit.ts";
import { boundDims } from "./graph/memory.ts";
import { decoderDims, decoderFeeds } from "./model/decoder.ts";
import { isMultiplied } from "./model/halved.ts";
import { elementCount, parameters } from "./model/weights.ts";
import { bytesOf, GB, gpus, host, LORA, model, PAPER, SMALL, small } from "./plan.fixture.ts";
import { Planner, type PlanRequest } from "./plan.ts";
import { instrumenterShape } from "./plan-generation.ts";
import { PlanGraphs } from "./plan-graphs.ts";
import { BLOCK_NUMBERS } from "./runtime/buffer.ts";

/** The requests of these tests share models and graphs. */
const graphs = new PlanGraphs();
const planner = (request: PlanRequest) => new Planner(request, graphs);

test("the plan counts float32 weights, gradients and moments of policy and critic, and the reference's weights", () => {
  const count = parameters(SMALL).reduce((total, { shape }) => total + elementCount(shape), 0);
  const head = SMALL.hiddenSize + 1;
  const plan = planner(small()).plan(512);
  assert.equal(bytesOf(plan, "weights"), 4 * (3 * count + head)); // generation reads them where they are
  assert.equal(bytesOf(planner(small()).plan(512, 3), "weights"), 4 * (3 * count + head));
  assert.equal(bytesOf(plan, "gradients"), 4 * (count + head)); // of the larger one, as they take turns
  assert.equal(bytesOf(planner(small()).plan(512, 2), "gradients"), 2 * 4 * (count + head));
  assert.equal(bytesOf(plan, "optimiser"), 8 * (2 * count + head));
  const alone = planner(small({ critic: false })).plan(512);
  assert.equal(bytesOf(alone, "optimiser"), 8 * count);
  assert.equal(
    plan.hostBytes,
    plan.rows.reduce((total, row) => total + row.hostBytes, 0),
  );
  assert.equal(plan.gpuBytes, 0);
});

test("the plan has a KV cache that is large enough for instrumented programs", () => {
  const instrumenter = { promptTokens: 2048, responseTokens: 2048 };
  const cache = (change: Partial<PlanRequest>) => bytesOf(planner(small(change)).plan(512), "cache");
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
  assert.throws(() => fitRun(alone, 1, host(2 * GB), undefined, { graphs }), /cache .*, model\.instrumenter: Syntax\)/);
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
  const plan = planner(small({ device: { kind: "cuda", id: 0 } })).plan(512);
  const trained = 4 * (2 * count + head);
  const [weights, gradients, optimiser] = ["weights", "gradients", "optimiser"].map(
    (what) => plan.rows.find((row) => row.what === what)!,
  );
  assert.equal(weights!.hostBytes, trained + 4 * count);
  assert.equal(weights!.gpuBytes - weights!.hostBytes, 2 * count, "bfloat16 copies of the policy");
  const instrumenter = { promptTokens: 64, responseTokens: 64 };
  const instrumented = planner(small({ device: { kind: "cuda", id: 0 }, instrumenter })).plan(512);
  const both = instrumented.rows.find(({ what }) => what === "weights")!;
  assert.equal(both.gpuBytes - both.hostBytes, 4 * count, "and of the reference, which instruments");
  assert.deepEqual([gradients!.hostBytes, gradients!.gpuBytes], [0, 4 * (count + head)]);
  assert.equal(optimiser!.hostBytes, 2 * trained);
  const withoutCritic = planner(small({ device: { kind: "cuda", id: 0 }, critic: false })).plan(512);
  const [, , ofPolicy] = withoutCritic.rows.filter(({ what }) => ["weights", "gradients", "optimiser"].includes(what));
  assert.equal(optimiser!.gpuBytes - ofPolicy!.gpuBytes, 8 * (count + head));
  const block = optimiser!.gpuBytes - 2 * trained;
  assert.ok(block > 4 * 8 * BLOCK_NUMBERS && block < 16 * 8 * BLOCK_NUMBERS, `${block}: some float64 of a block`);
});

test("a GPU holds the KV cache in bfloat16: slots times the longest sequence, with or without shared prompts", () => {
  const cacheOf = (change: Partial<PlanRequest>) =>
    planner(small({ device: { kind: "cuda", id: 0 }, ...change }))
      .plan(512)
      .rows.find(({ what }) => what === "cache")!;
  const token = 4 * SMALL.layers * SMALL.keyValueHeads * SMALL.headSize;
  const { hostBytes, gpuBytes } = cacheOf({});
  assert.deepEqual([hostBytes, gpuBytes], [0, 64 * 2048 * token]);
  assert.equal(cacheOf({ samplesPerPrompt: 8 }).gpuBytes, gpuBytes);
  assert.equal(bytesOf(planner(small()).plan(512), "cache"), 2 * gpuBytes, "float32 on a CPU");
});

test("each session on a GPU has an arena of its own, which is larger than the activations on a CPU", () => {
  const run = planner(small());
  const lengths = { sequences: 1, promptTokens: 1024, responseTokens: 1024 };
  const held = (kind: "cpu" | "cuda") =>
    run.graphs.map((_, i) => run.pass(kind, i, lengths)).map(({ activations, logits }) => activations + logits);
  const [here, there] = [held("cpu"), held("cuda")];
  for (const [i, bytes] of there.entries()) assert.ok(bytes > here[i]! && bytes < 3 * here[i]!, `${bytes}, ${here[i]}`);
  const plan = planner(small({ device: { kind: "cuda", id: 0 } })).plan(2048);
  const activations = plan.rows.find(({ what }) => what === "activations")!.gpuBytes;
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
  assert.ok(activations > 0.5 * sum(there) && activations < sum(there));
  const one = bytesOf(planner(small({ device: { kind: "cuda", id: 0 }, critic: false })).plan(2048), "process");
  assert.ok(bytesOf(plan, "process") > 1.05 * one, "the sessions of a critic");
});

test("the plan with LoRA counts the model once and moments of the adapters alone", () => {
  const plan = planner(small({ adapter: { ...LORA, rank: 2 } })).plan(512);
  const file = fs.statSync(path.join(model("small"), "model.safetensors")).size;
  const weights = bytesOf(plan, "weights");
  assert.ok(weights > file && weights < 1.6 * file, `${weights} of ${file}`);
  assert.ok(bytesOf(plan, "optimiser") < bytesOf(planner(small()).plan(512), "optimiser") / 3);
});

test("the plan computes the dims of feeds without making them, so long sequences take no longer", () => {
  const { graphs: all, layout, model: adapted } = planner(small());
  const ids = (length: number) => Int32Array.from({ length }, (_, i) => i % SMALL.vocabSize);
  for (const [sequences, promptTokens, responseTokens] of [
    [1, 1, 1],
    [2, 16, 33],
    [3, 64, 64],
    [1, 2100, 1],
  ] as const) {
    const same = { prompt: ids(promptTokens), responses: [ids(responseTokens)] };
    const feeds = decoderFeeds(new Array(sequences).fill(same), adapted.config, layout);
    const distinct = Math.min(SMALL.vocabSize, Math.max(promptTokens, responseTokens - 1)); // no last one is read
    const dims = decoderDims({ sequences, promptTokens, responseTokens }, distinct, layout);
    for (const { graph } of all) assert.deepEqual(dims, { ...dims, ...boundDims(graph, feeds) });
  }
  const started = performance.now();
  const plan = planner(small({ maxPromptTokens: 1e6, maxResponseTokens: 1e6 })).plan(512);
  assert.ok(performance.now() - started < 20_000); // a mask alone would have 1e12 numbers
  assert.ok(bytesOf(plan, "activations") > 4e12);
});

test("a layer holds one block of attention scores, so activations do not grow with the square of a length", () => {
  const step = (length: number) => {
    const run = planner(small({ maxPromptTokens: length / 2, maxResponseTokens: length / 2 }));
    return run.pass("cpu", 0, { sequences: 1, promptTokens: length / 2, responseTokens: length / 2 }).activations;
  };
  assert.ok(step(16_384) < 4.5 * step(4096), `${step(4096)} and ${step(16_384)}`);
});

test("activations and logits grow with the tokens of a pass; the KV cache grows with rows and lengths", () => {
  const one = planner(small()).plan(2048);
  const four = planner(small()).plan(4 * 2048);
  const grown = bytesOf(four, "activations") / bytesOf(one, "activations");
  assert.ok(grown > 3.2 && grown < 4.1, `${grown}`);
  assert.ok(bytesOf(four, "logits") > 3 * bytesOf(one, "logits"));
  const half = planner(small({ generationBatchSize: 32 })).plan(2048);
  assert.equal(2 * bytesOf(half, "cache"), bytesOf(one, "cache"));
  const short = planner(small({ maxResponseTokens: 256 })).plan(2048);
  assert.equal(bytesOf(short, "cache") / bytesOf(one, "cache"), 1280 / 2048);
});

test("an offloaded run has rounded weights and a gradient on each GPU, and float32 weights and moments on the host", () => {
  const count = (kept: (name: string) => boolean) =>
    parameters(SMALL).reduce((total, { name, shape }) => total + (kept(name) ? elementCount(shape) : 0), 0);
  const [all, matrices] = [count(() => true), count(isMultiplied)];
  const [head, block] = [SMALL.hiddenSize + 1, 4 * BLOCK_NUMBERS];
  for (const number of [1, 4]) {
    const devices = gpus(number);
    const offloading = planner(small({ device: devices[0]!, devices, compute: "bfloat16" }));
    const rows = (swaps: boolean) => offloading.plan(4096, number, { offloads: true, swaps }).rows;
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

test("each of several GPUs has the weights, a gradient, and a part of the moments and of the slots", () => {
  const onGpus = (count: number, change: Partial<PlanRequest> = {}) => {
    const [device] = gpus(1);
    const plan = planner(small({ device: device!, devices: gpus(count), ...change })).plan(2048);
    return { plan, of: (what: string) => plan.rows.find((row) => row.what === what)! };
  };
  const [one, four] = [onGpus(1), onGpus(4)];
  assert.equal(four.plan.ranks, 4);
  for (const what of ["weights", "activations"]) assert.deepEqual(four.of(what), one.of(what));
  assert.equal(four.of("gradients").gpuBytes, one.of("gradients").gpuBytes);
  assert.equal(one.of("gradients").hostBytes, 0);
  assert.equal(four.of("gradients").hostBytes, one.of("gradients").gpuBytes + 4 * 4 * BLOCK_NUMBERS);
  assert.equal(four.of("cache").gpuBytes, one.of("cache").gpuBytes / 4);
  assert.match(four.of("cache").detail, /^KV cache of 16 x 2048 tokens$/);
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

test("supervised training has no reference, no critic and no KV cache, and one policy's gradients and moments", () => {
  for (const adapter of [undefined, LORA]) {
    const run = planner(small({ adapter, critic: false })).plan(2048);
    const alone = planner(small({ adapter, critic: false, supervised: "Alone" })).plan(2048);
    assert.deepEqual(
      alone.rows.map(({ what }) => what),
      ["process", "weights", "gradients", "optimiser", "activations", "logits"],
    );
    const trained = bytesOf(run, "gradients");
    assert.equal(bytesOf(alone, "weights"), bytesOf(run, "weights") - trained, "the reference");
    for (const same of ["gradients", "optimiser"]) assert.equal(bytesOf(alone, same), bytesOf(run, same));
    assert.ok(bytesOf(alone, "activations") <= bytesOf(run, "activations"));
    // a GPU keeps the arena of each graph: two more where supervised steps come before a run
    const [device] = gpus(1);
    const onGpu = (supervised?: "First") =>
      planner(small({ adapter, critic: false, device: device!, ...(supervised && { supervised }) })).plan(2048);
    assert.ok(onGpu("First").gpuBytes > onGpu().gpuBytes);
  }
});
