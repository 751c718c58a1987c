import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BASE } from "../../../crds/rule-cases.ts";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { resolveForThisMachine } from "./resolve.ts";

const run = parseTrainingRun(BASE, "run.yaml", ["model.policy=."]);
const policies: [weights: string, isFound: boolean][] = [
  ["model.safetensors", true],
  ["model.safetensors.index.json", true],
  ["pytorch_model.bin", false],
];
for (const [weights, isFound] of policies)
  test(`A policy with ${weights} is ${isFound ? "accepted" : "refused"}`, () => {
    const folder = mkdtempSync(join(tmpdir(), "resolve-"));
    try {
      for (const file of ["config.json", "tokenizer.json", weights]) writeFileSync(join(folder, file), "");
      const resolved = () => resolveForThisMachine(run, "run.yaml", folder);
      if (isFound) assert.equal(resolved().spec.model.policy, folder);
      else assert.throws(resolved, { message: /model\.safetensors is missing; name a folder in Hugging Face format$/ });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
