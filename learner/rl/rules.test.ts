import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { type Adaptation, fullAdaptation, loraAdaptation } from "../engine/adaptation.ts";
import { gradientGraph, rulesOf } from "../engine/graph/differences.fixture.ts";
import { CASES as GRAPH_CASES } from "../engine/graph/gradients.fixture.ts";
import { configJson, type ModelConfig } from "../engine/model/config.ts";
import { saveWeights } from "../engine/model/files.ts";
import { writeModelFolder } from "../engine/model/folder.ts";
import { CASES as MODEL_CASES } from "../engine/model/gradients.fixture.ts";
import { PROJECTIONS } from "../engine/model/lora.ts";
import { initialWeights, parameters } from "../engine/model/weights.ts";
import { policyStepGraph, pretrainStepGraph, valueStepGraph } from "../engine/steps.ts";

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "rules-"));
after(() => fs.rmSync(scratch, { recursive: true }));

const SMALL: ModelConfig = {
  ...{ modelType: "qwen2", vocabSize: 23, hiddenSize: 8, intermediateSize: 12, layers: 2 },
  ...{ heads: 2, keyValueHeads: 1, headSize: 4, normEpsilon: 1e-6, ropeTheta: 10000, tied: true },
  ...{ queryKeyValueBias: true, maxPositions: 64, initializerRange: 0.2 },
};
const CONFIGS: Record<string, ModelConfig> = {
  "qwen2, a large vocabulary": { ...SMALL, vocabSize: 9000 },
  qwen3: { ...SMALL, modelType: "qwen3", queryKeyValueBias: false, queryKeyNorm: true, tied: false },
  llama: { ...SMALL, modelType: "llama", queryKeyValueBias: true, outputBias: true },
};

function* adaptations(): Generator<[string, Adaptation]> {
  for (const [name, config] of Object.entries(CONFIGS)) {
    const full = path.join(scratch, name);
    const half = path.join(scratch, `${name}, bfloat16`);
    const weights = initialWeights(config, 1);
    for (const folder of [full, half]) {
      fs.mkdirSync(folder);
      fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
    }
    writeModelFolder(full, full, config, weights);
    const tensors = parameters(config).map((part) => ({ ...part, read: () => weights.get(part.name)! }));
    saveWeights(half, tensors, { dtype: "BF16" });
    yield [name, fullAdaptation(full)];
    for (const folder of [full, half])
      yield [`${name}, LoRA`, loraAdaptation(folder, { rank: 2, alpha: 2, targets: PROJECTIONS }, 1)];
  }
}

const tested = new Set([...GRAPH_CASES, ...MODEL_CASES].flatMap((rule) => rulesOf(gradientGraph(rule))));

test("every gradient rule of the graphs that train is compared with finite differences", () => {
  const used = new Set<string>();
  for (const [name, adaptation] of adaptations()) {
    for (const build of [policyStepGraph, valueStepGraph, pretrainStepGraph]) {
      for (const checkpointing of [false, true]) {
        for (const rule of rulesOf(build(adaptation, { checkpointing }))) {
          assert.ok(tested.has(rule), `${rule}, in ${build.name} of ${name}`);
          used.add(rule);
        }
      }
    }
  }
  for (const rule of ["MatMul", "attention", "tokenLogProbs", "frozenLinear", "checkpoint", "affine"])
    assert.ok(used.has(rule), `${rule} is in none of them: they are not the graphs that they were`);
});

test("README.md lists exactly the rules that are tested", () => {
  const readme = fs.readFileSync(path.join(import.meta.dirname, "../engine/graph/README.md"), "utf8");
  const [, section] = readme.split("## Gradient rules");
  const rows = section!.split("\n## ")[0]!.matchAll(/^\| (`[^|]*) \|/gm);
  const listed = [...rows].flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  assert.deepEqual(listed.toSorted(), [...tested].toSorted());
});
