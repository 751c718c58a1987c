/** Runs a learner's work on a GPU. Results are meaningless here; the tests check that everything runs, and its demands on the GPU. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { samples } from "../bench/gpu.ts";
import { type Counts, counting, resizeDevice } from "./counts.ts";
import { FIGURES, type Figures, measure, SLICE, worse } from "./figures.ts";
import { CONFIGURATIONS, onDevice, PHASES, sampled } from "./phases.ts";

process.env.REHEARSAL_DEVICES = "2"; // read when the library is loaded, with the first session on a device

const known: Record<string, Figures> = JSON.parse(await readFile(FIGURES, "utf8"));
/** Arithmetic with sizes of tensors, which ONNX Runtime needs and computes on the CPU. */
const SIZES = /^(Concat|Mul|Sub|Add) int64$/;

for (const configuration of Object.keys(CONFIGURATIONS))
  test(`${configuration}: log-probs, steps and generation run, and no figure is worse than before`, async () => {
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

test("With adapters, bfloat16 launches fewer kernels than float32, except for the critic's gradient", () => {
  const launches = (configuration: string, phase: string) => known[configuration]!.counts[phase]!.launches;
  for (const phase of ["log-probs", "policy step"])
    assert.ok(launches("LoRA, bfloat16", phase) < launches("LoRA, float32", phase), phase);
});

const LORA = CONFIGURATIONS["LoRA, float32"]!;
/** Small enough for quick checkpoints and for logits that are not in chunks. */
const SMALL = {
  ...SLICE,
  config: { ...SLICE.config, hiddenSize: 64, headSize: 16, heads: 4, intermediateSize: 128, vocabSize: 512 },
};

test("The engine generates beside a trained policy: with the reference, with top-p, and greedily", async () => {
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

test("top-p takes as many launches for eight responses as for two, and no further copies", async () => {
  const launches: number[] = [];
  for (const batch of [2, 8])
    await onDevice({ ...SMALL, batch }, {}, async (engine, samples) => {
      const found = [];
      for (const topP of [1, 0.9]) {
        await sampled(engine, samples, { topP });
        found.push((await counting(() => sampled(engine, samples, { topP }))).counts);
      }
      const [all, nucleus] = found as [Counts, Counts];
      assert.deepEqual([nucleus.toHost, nucleus.toDevice], [all.toHost, all.toDevice]);
      launches.push(nucleus.launches - all.launches);
    });
  assert.equal(launches[0], launches[1]);
});
/** Work in addition to PHASES: Appendix C.3's instrumentation, and programs of the policies before and after training. */
const ALL_PHASES: typeof PHASES = {
  ...PHASES,
  "static policy": (engine, batch) => sampled(engine, batch, { weights: "reference", temperature: 0 }),
  evaluation: (engine, batch) => sampled(engine, batch, { temperature: 0.7, topP: 0.9 }),
};

const full = (phase: string) => (error: Error & { code?: string }) => {
  assert.equal(error.code, "device", `${phase}: ${error.message}`);
  assert.match(error.message, /^cuda:0 cannot be used: the GPU's memory is full; end what else uses it.*$/, phase);
  return true;
};

test("A phase that fills the GPU's memory fails with one line, and works when there is room again", async () => {
  for (const [phase, act] of Object.entries(ALL_PHASES))
    await onDevice(SMALL, LORA, async (engine, batch) => {
      await engine.initializeCritic(0);
      const long = samples(SMALL.config, 4 * SMALL.batch, 256, 64);
      // first while sessions are made, then, with sessions, in a run with more tokens than before
      for (const given of [batch, long]) {
        resizeDevice(0);
        await assert.rejects(act(engine, given), full(phase));
        resizeDevice(80e9);
        await act(engine, batch);
      }
    });
});

for (const [name, options] of Object.entries({ LoRA: LORA, "every weight": {} }))
  test(`${name}: with a full GPU, checkpoints are written, and the first step after a resume fails with one line`, async () => {
    const directory = await mkdtemp(path.join(os.tmpdir(), "longrun-checkpoint-"));
    try {
      const saved = await onDevice(SMALL, options, async (engine, batch) => {
        await engine.initializeCritic(0);
        for (const phase of ["critic step", "policy step"]) await PHASES[phase]!(engine, batch);
        resizeDevice(0); // weights and moments are copied from their place
        return engine.save(directory);
      });
      await onDevice(SMALL, options, async (engine, batch) => {
        await engine.load(directory); // the first step moves weights and moments to the device
        assert.equal(await engine.digest(), saved.digest);
        await assert.rejects(PHASES["policy step"]!(engine, batch), full("the first step after a resume"));
        resizeDevice(80e9);
        for (const act of Object.values(ALL_PHASES)) await act(engine, batch);
      });
    } finally {
      resizeDevice(80e9);
      await rm(directory, { recursive: true });
    }
  });

/** When ONNX Runtime loads its CUDA provider, it allocates a byte on the first GPU, whichever GPU it will use, and gets 512. */
const LOADING_BYTES = 512;

test("A learner on the second GPU does not use the first one, and each GPU has its own memory", async () => {
  const second = { ...LORA, device: { kind: "cuda", id: 1 } } as const;
  const { counts } = await counting(() =>
    onDevice(SMALL, second, async (engine, batch) => {
      await engine.initializeCritic(0);
      for (const act of Object.values(ALL_PHASES)) await act(engine, batch);
      resizeDevice(0, 1);
      const long = samples(SMALL.config, 4 * SMALL.batch, 256, 64);
      await assert.rejects(PHASES["policy step"]!(engine, long), {
        message: /^cuda:1 cannot be used: the GPU's memory is full/,
      });
      resizeDevice(80e9, 1);
    }),
  );
  assert.ok(counts.peaks[0]! <= LOADING_BYTES, `the first GPU's peak is ${counts.peaks[0]} bytes`);
  assert.ok(counts.peaks[1]! > 1e6, `the second GPU's peak is ${counts.peaks[1]} bytes`);
});
