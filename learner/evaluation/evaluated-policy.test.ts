import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type AdapterOptions, PROJECTIONS, type RunningEngine, startEngine } from "../engine/index.ts";
import { EvaluatedPolicy, type Weights, weightsOf } from "./evaluated-policy.ts";

const MODEL = path.join(import.meta.dirname, "../../manifests/quickstart/policy");
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "evaluated-"));
after(() => fs.rmSync(folder, { recursive: true }));

const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0 };
const STEP = { learningRate: 0.05, gradientClip: 0, adam: ADAM, aggregation: "TokenMean", microBatchSize: 1 } as const;
const PROMPT = Int32Array.of(5, 6, 7);
const GREEDY = { seeds: [0], temperature: 0, topP: 1, maxNewTokens: 6, eosIds: [] };
const said = async (engine: RunningEngine, weights: "policy" | "reference" = "policy") => {
  const [answer] = await engine.generate([PROMPT], { ...GREEDY, weights });
  return [...answer!.response];
};

for (const [name, adapter] of [
  ["every weight", undefined],
  ["LoRA", { rank: 2, alpha: 2, targets: PROJECTIONS, seed: 1 }],
] as [string, AdapterOptions | undefined][])
  test(`a policy that is read from its files has the log-probs of the engine that trained it: ${name}`, async () => {
    const training = await startEngine({ model: MODEL, threads: 1, adapter, critic: false });
    const before = await said(training);
    for (let i = 0; i < 5; i++)
      await training.pretrain([{ prompt: PROMPT, response: Int32Array.of(9, 10, 11, 12) }], STEP);
    const trained = await said(training);
    assert.notDeepEqual(trained, before);
    const checkpoint = path.join(folder, name);
    fs.mkdirSync(checkpoint);
    await training.save(checkpoint);
    await training.close();

    let open = 0;
    const start = async (weights: Weights) => {
      open++;
      const engine = await startEngine({ ...weights, threads: 1, slots: 2, positions: 16, workers: 1 });
      return { ...engine, close: () => engine.close().then(() => void open--) };
    };
    for (const instruments of [false, true]) {
      const evaluated = await EvaluatedPolicy.open(start, weightsOf(MODEL, adapter, undefined), instruments);
      assert.deepEqual(await said(evaluated.engine), before);
      await evaluated.change(weightsOf(MODEL, adapter, checkpoint));
      assert.equal(open, instruments ? 2 : 1, "the policy before it is closed, unless it inserts markers");
      assert.deepEqual(await said(evaluated.engine), trained);
      if (instruments || adapter) assert.deepEqual(await said(evaluated.engine, "reference"), before);
      await evaluated.engine.close();
      open = 0;
    }
  });

test("a checkpoint whose weights are torn is refused", async () => {
  const torn = path.join(folder, "torn");
  fs.cpSync(MODEL, path.join(torn, "policy"), { recursive: true });
  fs.truncateSync(path.join(torn, "policy/model.safetensors"), 1e6);
  const { model, adapter } = weightsOf(MODEL, undefined, torn);
  await assert.rejects(startEngine({ model, adapter, threads: 1 }), /model\.safetensors/);
});
