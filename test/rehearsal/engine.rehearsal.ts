/** What a learner does on a GPU. Results mean nothing here; that everything runs, and what it costs the GPU, does. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { samples } from "../bench/gpu.ts";
import { resizeDevice } from "./counts.ts";
import { FIGURES, type Figures, measure, SLICE, worse } from "./figures.ts";
import { CONFIGURATIONS, onDevice, PHASES, sampled } from "./phases.ts";

const known: Record<string, Figures> = JSON.parse(await readFile(FIGURES, "utf8"));
/** Sizes of other tensors: ONNX Runtime computes them on the CPU, where it needs them. */
const SIZES = /^(Concat|Mul|Sub|Add) int64$/;

for (const configuration of Object.keys(CONFIGURATIONS))
  test(`${configuration}: log-probs, steps and generation run, and no figure is worse than it was`, async () => {
    const found = await measure(configuration);
    assert.deepEqual(
      worse(found, known[configuration]),
      [],
      "where this is meant, write the figures anew: node test/rehearsal/figures.ts",
    );
    for (const [graph, nodes] of Object.entries(found.onCpu))
      for (const node of Object.keys(nodes)) assert.match(node, SIZES, `${graph} runs it on the CPU`);
    for (const [graph, count] of Object.entries(found.memcpyNodes)) assert.equal(count, 0, `${graph}: Memcpy nodes`);
  });

const LORA = CONFIGURATIONS["LoRA, float32"]!;
/** Small enough that a checkpoint is written in a moment, and that logits are not in chunks. */
const SMALL = {
  ...SLICE,
  config: { ...SLICE.config, hiddenSize: 64, headSize: 16, heads: 4, intermediateSize: 128, vocabSize: 512 },
};

for (const [name, options] of Object.entries({ LoRA: LORA, "every weight": {} }))
  test(`${name}: a checkpoint is written and read, and the run goes on from it`, async () => {
    const directory = await mkdtemp(path.join(os.tmpdir(), "longrun-checkpoint-"));
    try {
      const saved = await onDevice(SMALL, options, async (engine, batch) => {
        await engine.initializeCritic(0);
        for (const phase of ["log-probs", "critic step", "policy step"]) await PHASES[phase]!(engine, batch);
        return engine.save(directory);
      });
      await onDevice(SMALL, options, async (engine, batch) => {
        await engine.load(directory);
        assert.equal(await engine.digest(), saved.digest);
        for (const act of Object.values(PHASES)) await act(engine, batch);
      });
    } finally {
      await rm(directory, { recursive: true });
    }
  });

test("the reference generates beside a policy that was trained, from all tokens, the likeliest, and the most probable", async () => {
  await onDevice(SMALL, LORA, async (engine, batch) => {
    await engine.initializeCritic(0);
    await PHASES["policy step"]!(engine, batch);
    for (const options of [{ weights: "reference" }, { topP: 0.9 }, { temperature: 0 }] as const)
      assert.equal((await sampled(engine, batch, options)).length, batch.length);
    // eight solutions of one prompt share its keys and values
    const group = Array.from({ length: 8 }, () => batch[0]!);
    assert.equal((await sampled(engine, group, {})).length, group.length);
  });
});

test("where a phase fills the GPU's memory, it fails with one line that says so, and works when there is room again", async () => {
  for (const [phase, act] of Object.entries(PHASES))
    await onDevice(SMALL, LORA, async (engine, batch) => {
      await engine.initializeCritic(0);
      const long = samples(SMALL.config, 4 * SMALL.batch, 256, 64);
      // first while sessions are made, then, with sessions, in a run of more tokens than any before
      for (const given of [batch, long]) {
        resizeDevice(0);
        await assert.rejects(act(engine, given), (error: Error & { code?: string }) => {
          assert.equal(error.code, "device", `${phase}: ${error.message}`);
          assert.match(
            error.message,
            /^cuda:0 cannot be used: the GPU's memory is full; end what else uses it.*$/,
            phase,
          );
          return true;
        });
        resizeDevice(80e9);
        await act(engine, batch);
      }
    });
});
