import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { type RunningEngine, startEngine } from "../engine/engine.ts";
import { readTokenizer } from "../engine/model/folder.ts";
import type { Tokenizer } from "../engine/model/tokenizer.ts";
import type { NewSample } from "../store/types.ts";
import { Rollout } from "./rollout.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const task = {
  ...{ name: "prices", description: "Predict the price.", metric: { name: "MAE", direction: "Lower" as const } },
  ...{ columns: ["id", "size", "price"], files: [], snippet: [], submissionFormat: [], packages: [] },
};
/** Two answers that are executed, one that holds no program. */
const SOLUTIONS = [
  "Read the data and fit.\n```python\nimport pandas as pd\ntrain = pd.read_csv('input/train.csv')\n```",
  "No program.",
  "Broken.\n```python\nx = (\n```",
];

function spec(limits: { prompt: number; response: number; batch?: number }) {
  return parseTrainingRun(
    `{apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: {name: a}, spec: {seed: 3, tasks: [{name: diamonds}],
      prompts: {style: Short}, model: {policy: quickstart, maxPromptTokens: 256, maxResponseTokens: 64, instrumenter: StaticPolicy,
      generationBatchSize: ${limits.batch ?? 64},
      instrumenterMaxPromptTokens: ${limits.prompt}, instrumenterMaxResponseTokens: ${limits.response}}}}`,
    "a.yaml",
  ).spec;
}

/** The real bundled policy instruments; its solutions are written for it. */
describe("a rollout with the bundled policy as StaticPolicy", () => {
  let tokenizer: Tokenizer;
  let engine: RunningEngine;
  before(async () => {
    tokenizer = readTokenizer(POLICY);
    engine = await startEngine({ model: POLICY, threads: 1 });
  });
  after(() => engine.close());

  async function launch(limits: Parameters<typeof spec>[0], answer?: string) {
    const stored: NewSample[] = [];
    const asked: { of: string | undefined; prompts: number; tokens: number; temperature: number }[] = [];
    const rollout = new Rollout({
      engine: {
        ...engine,
        generate: async (prompts, options) => {
          asked.push({
            ...{ of: options.weights, prompts: prompts.length },
            ...{ tokens: options.maxNewTokens, temperature: options.temperature },
          });
          const isReference = options.weights === "reference";
          if (isReference && answer === undefined) return engine.generate(prompts, options);
          return prompts.map((_, i) => {
            const response = tokenizer.encode(isReference ? answer! : SOLUTIONS[i % SOLUTIONS.length]);
            return { response, logProbs: new Float32Array(response.length), finished: true };
          });
        },
      },
      store: { lineage: 1, previousSolutions: () => [], failedSolutions: () => [] },
      addSamples: async (samples) => void stored.push(...samples),
      tasks: [{ ...task, weight: 1 }],
      spec: spec(limits),
      encode: (messages) => tokenizer.encodeChat(messages),
      decode: (tokens) => tokenizer.decode(tokens),
      nextNumber: 1,
    });
    const generation = rollout.generation(0);
    generation.begin(3);
    await generation.end();
    return { launched: generation.launched, stored, asked };
  }

  it("asks for as many programs at once as the KV cache was planned for", async () => {
    const answer = "```python\nx = (\n```";
    const askedAtOnce = async (batch: number) => {
      const { asked } = await launch({ prompt: 900, response: 48, batch }, answer);
      return asked.filter(({ of }) => of === "reference").map(({ prompts }) => prompts);
    };
    assert.deepEqual(await askedAtOnce(64), [2]);
    assert.deepEqual(await askedAtOnce(3), [1, 1]); // 3 x (2 x 256 + 4 x 64) is room for one of 2 x 900 + 4 x 48
  });

  it("asks the frozen weights greedily, and falls back to Syntax and then to no markers if the answer is wrong", async () => {
    const { launched, stored, asked } = await launch({ prompt: 900, response: 48 });
    assert.deepEqual(asked, [
      { of: undefined, prompts: 3, tokens: 64, temperature: 0.7 },
      { of: "reference", prompts: 2, tokens: 48, temperature: 0 },
    ]);
    assert.deepEqual(
      stored.map(({ state, instrumenter, insertedMarkers }) => [state, instrumenter, insertedMarkers]),
      [
        ["queued", "Syntax", ["imported packages", "loaded data"]],
        ["notExecuted", "None", []],
        ["queued", "None", []],
      ],
    );
    assert.equal(stored[2].instrumented, "x = (\n");
    assert.equal(launched.instrumenterFaults.length, 2);
    assert.equal(launched.instrumentSeconds.length, 2);
    assert.ok(launched.instrumentSeconds[0] > 0 && launched.instrumentSeconds[0] === launched.instrumentSeconds[1]);
    for (const fault of launched.instrumenterFaults)
      assert.ok(["cutOff", "noCodeBlock", "changed"].includes(fault), fault);
    const refused = launched.instrumenterFaults.filter((fault) => fault !== "cutOff").length;
    assert.equal(launched.verificationFailures, refused);
  });

  it("stores the frozen weights' program if it is right", async () => {
    const answer = SOLUTIONS[0].replace("\ntrain = ", '\nprint("imported packages")\ntrain = ');
    const { launched, stored } = await launch({ prompt: 900, response: 48 }, answer);
    assert.equal(stored[0].instrumenter, "StaticPolicy");
    assert.deepEqual(stored[0].insertedMarkers, ["imported packages"]);
    assert.match(
      stored[0].instrumented!,
      /^import pandas as pd\nprint\("@@NONCE@@:imported packages", flush=True\)\ntrain/,
    );
    assert.equal(stored[0].program, stored[0].instrumented!.replace(/print.*\n/, ""));
    assert.deepEqual(launched.instrumenterFaults, ["changed"]); // the answer to the third is that to the first
  });

  it("does not ask the frozen weights if no prompt fits", async () => {
    const { launched, asked } = await launch({ prompt: 16, response: 16 });
    assert.equal(asked.length, 1);
    assert.deepEqual(launched.instrumenterFaults, ["promptTooLong", "promptTooLong"]);
    assert.equal(launched.verificationFailures, 0);
  });
});
