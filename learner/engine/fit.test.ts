/** Tests how a run is fitted into the memory, and how a run that does not fit is refused. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import type { ActivationCheckpointing } from "./engine.ts";
import { type Budget, checkLengths, fitRun, planTable, size } from "./fit.ts";
import { readConfig } from "./model/folder.ts";
import { MappedWeights } from "./model/mapped.ts";
import { wideBytes } from "./model/widened.ts";
import { bytesOf, GB, gpus, host, LORA, model, PAPER, small } from "./plan.fixture.ts";
import { Planner, type PlanRequest } from "./plan.ts";
import { PlanGraphs } from "./plan-graphs.ts";

/** The requests of these tests share models and graphs. */
const like = { graphs: new PlanGraphs() };
const fit = (request: PlanRequest, threads: number, budget: Budget, mode?: ActivationCheckpointing) =>
  fitRun(request, threads, budget, mode, like);
const planner = (request: PlanRequest) => new Planner(request, like.graphs);

test("a pass has 512 tokens a thread, or as many as fit", () => {
  const lengths = { maxPromptTokens: 64, maxResponseTokens: 64, generationBatchSize: 1 };
  const frozen = { ...lengths, adapter: { ...LORA, rank: 4, alpha: 4 } };
  const together = fit(small(frozen), 4, host(64 * GB));
  assert.deepEqual([together.ranks, together.microBatchTokens], [1, 2048]);
  const room = fit(small(lengths), 4, host(64 * GB));
  assert.deepEqual([room.ranks, room.microBatchTokens], [4, 512]);
  const tight = fit(small(lengths), 4, host(room.hostBytes - 1));
  assert.deepEqual([tight.ranks, tight.microBatchTokens], [4, 256]);
  assert.ok(tight.hostBytes < room.hostBytes);
});

test("a half-precision model beside adapters is copied to float32 for a CPU's generation where half of the memory is enough", () => {
  const request = small({ adapter: { ...LORA, rank: 4, alpha: 4 } });
  const narrow = planner(request).plan(512, 1);
  const wide = fit(request, 1, host(64 * GB));
  assert.deepEqual([narrow.widens, wide.widens, wide.microBatchTokens], [false, true, narrow.microBatchTokens]);
  assert.equal(wide.hostBytes - narrow.hostBytes, wideBytes(new MappedWeights(request.model).tensors));
  assert.match(
    planTable(wide, host(64 * GB)).join("\n"),
    /weights .* the frozen model, once, in float32 for generation too, adapters/,
  );
  assert.equal(fit(request, 1, host(2 * wide.hostBytes)).widens, true);
  assert.deepEqual(fit(request, 1, host(2 * wide.hostBytes - 1)), narrow);
  assert.equal(
    fit(request, 1, { host: undefined, gpu: undefined }).widens,
    false,
    "it is unknown whether there is room",
  );
  for (const change of [{ model: model("small", "F32") }, { adapter: undefined }, { supervised: "Alone" as const }])
    assert.equal(fit({ ...request, ...change }, 1, host(64 * GB)).widens, false);
  const gpu = { ...host(64 * GB), gpu: { bytes: 64 * GB, source: "free on cuda:0" } };
  assert.equal(fit({ ...request, device: { kind: "cuda", id: 0 } }, 1, gpu).widens, false);
});

test("threads share one pass where one pass for each thread does not fit", () => {
  const apart = fit(small(), 4, host(64 * GB), "Never");
  assert.equal(apart.ranks, 4);
  const together = fit(small(), 4, host(apart.hostBytes - 1), "Never");
  assert.equal(together.ranks, 1);
  assert.ok(bytesOf(together, "activations") < bytesOf(apart, "activations") / 3.9);
  assert.ok(4 * bytesOf(together, "gradients") === bytesOf(apart, "gradients"));
});

test("layers are recomputed where a single sequence does not fit otherwise", () => {
  const kept = fit(small(), 1, host(64 * GB));
  assert.equal(kept.checkpointing, false);
  const recomputed = fit(small(), 1, host(kept.hostBytes - 1));
  assert.equal(recomputed.checkpointing, true);
  assert.ok(bytesOf(recomputed, "activations") < 0.7 * bytesOf(kept, "activations"));
  assert.deepEqual(fit(small(), 1, host(64 * GB), "Always"), recomputed);
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
        const plan = planner(request).plan(2048, 1, { swaps: budget.gpu !== undefined });
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
      assert.throws(() => fit(request, 1, budget, "Never"), refusal);
    });
  test("a refusal names the largest part first, at most four parts, and checkpointing only where it is off", () => {
    assert.throws(
      () => fit(small({ generationBatchSize: 512 }), 1, host(1 * GB)),
      ({ message }: Error) => {
        assert.match(message, /each: cache [^;]*(; [^;]*){3}; it fits with model.generationBatchSize: 64$/);
        return !message.includes("activationCheckpointing");
      },
    );
  });
});

for (const [count, gigabytes] of [
  [8, 40],
  [2, 80],
] as const)
  test(`every weight of 3B fits ${count} x ${gigabytes} GB in bfloat16 with prompts and responses of 1,024 tokens`, () => {
    const devices = gpus(count);
    const request = { ...PAPER, model: model("3b", "BF16"), microBatchSize: 2, device: devices[0]!, devices };
    const budget = { host: undefined, gpu: { bytes: gigabytes * GB, source: "given" } };
    const plan = fit({ ...request, compute: "bfloat16" }, 0, budget, "Always");
    assert.ok(plan.gpuBytes <= gigabytes * GB);
    assert.equal(plan.swaps, gigabytes === 40, "policy, reference and critic are there in turn");
    assert.equal(plan.microBatchTokens, 2 * 2048, "two sequences at a time");
    const said = plan.swaps ? /weights .*on a GPU in bfloat16, one at a time$/m : /weights .*on a GPU in bfloat16$/m;
    assert.match(planTable(plan, budget).join("\n"), said);
  });

test("7B with LoRA fits 4 x 24 GB if layers are recomputed and graphs have their memory in turn, but not 2", () => {
  const on = (count: number) => {
    const devices = gpus(count);
    const request = { ...PAPER, model: model("7b", "BF16"), device: devices[0]!, devices, adapter: LORA };
    const budget = { host: undefined, gpu: { bytes: 24 * GB, source: "given" } };
    return fit({ ...request, compute: "bfloat16" }, 0, budget);
  };
  const { checkpointing, swaps } = on(4);
  assert.deepEqual({ checkpointing, swaps }, { checkpointing: true, swaps: true });
  assert.throws(() => on(2), /it fits with/);
});

test("policy and critic of 3B do not fit on a GPU of 80 GB if every weight is trained, but they do with LoRA", () => {
  const gpu = { host: { bytes: 500 * GB, source: "given" }, gpu: { bytes: 79 * GB, source: "free on cuda:0" } };
  const request = {
    ...{ ...PAPER, model: model("3b"), device: { kind: "cuda", id: 0 } as const },
    ...{ maxPromptTokens: 256, maxResponseTokens: 256, generationBatchSize: 16 },
  };
  assert.ok(planner(request).plan(512).gpuBytes > 79 * GB);
  const plan = fit({ ...request, microBatchSize: 1, adapter: LORA }, 0, gpu);
  const frozen = plan.rows.find(({ what }) => what === "weights")!;
  assert.ok(frozen.gpuBytes > 6.1 * GB && frozen.gpuBytes < 7 * GB, `${frozen.gpuBytes}: the model is there once`);
  assert.ok(frozen.hostBytes < 1 * GB, `${frozen.hostBytes}: adapters alone`);
  assert.ok(plan.gpuBytes <= 79 * GB, `${plan.gpuBytes}`);
  const lines = planTable(plan, gpu);
  assert.match(lines[0]!, /^memory plan: on cuda:0 [\d.]+ GB of 79\.0 GB free on cuda:0; here /);
  assert.equal(lines.length, 1 + plan.rows.length);
});

test("a refusal names changes that make the run fit, such as the smallest sufficient number of GPUs", () => {
  const [device] = gpus(1);
  const request = small({ device: device!, maxPromptTokens: 256, maxResponseTokens: 256, generationBatchSize: 512 });
  const needs = (change: Partial<PlanRequest>) =>
    planner({ ...request, checkpointing: true, ...change }).plan(512, undefined, { swaps: true }).gpuBytes;
  const refused = (bytes: number, change: Partial<PlanRequest> = {}) => {
    const budget = { host: undefined, gpu: { bytes, source: "given" } };
    try {
      fit({ ...request, ...change }, 1, budget);
    } catch (error) {
      return (error as Error).message.split("; it fits with ")[1];
    }
    return "not refused";
  };
  assert.ok(needs({}) > needs({ devices: gpus(2) }) && needs({ devices: gpus(2) }) > needs({ devices: gpus(4) }));
  assert.match(
    refused(needs({}) - 1)!,
    /^2 GPUs like this, or with 1 GPU of 24 GB, or with model.adaptation.type: LoRA, or with algorithm.baseline: GRPO, or with model.generationBatchSize: 256$/,
  );
  assert.match(refused(needs({ devices: gpus(2) }) - 1)!, /^4 GPUs like this/);
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
