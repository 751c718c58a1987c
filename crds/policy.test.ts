import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isPolicyName, policyFolder } from "./policy.ts";

test("A bundled name is an existing folder, wherever the manifest is", () => {
  const folder = policyFolder("quickstart", "run.yaml", "/somewhere");
  for (const file of ["config.json", "model.safetensors", "tokenizer.json"])
    assert.ok(existsSync(join(folder, file)), file);
});

const folders: [policy: string, folder: string][] = [
  ["./quickstart", "/model/quickstart"],
  ["qwen/3b", "/model/qwen/3b"],
  ["qwen2.5", "/model/qwen2.5"],
  [".", "/model"],
  ["../policy", "/policy"],
  ["/elsewhere/policy", "/elsewhere/policy"],
];
for (const [policy, folder] of folders) {
  test(`${policy} is the folder ${folder}`, () => {
    assert.equal(policyFolder(policy, "run.yaml", "/model"), folder);
    assert.ok(!isPolicyName(policy));
  });
}

for (const name of ["nowhere", "constructor"]) {
  test(`${name} is refused with the bundled names`, () => {
    assert.throws(() => policyFolder(name, "run.yaml", "/model"), {
      name: "ManifestError",
      message: `run.yaml: spec.model.policy is ${name}: longrun has no bundled policy of this name; give one of quickstart, or ./${name} for a folder`,
    });
  });
}

test("A source that nobody fetched is refused", () => {
  assert.throws(() => policyFolder(undefined, "run.yaml", "/model"), {
    message:
      "run.yaml: spec.model.source is fetched by longrun run and by the controller alone; give spec.model.policy, the folder that longrun model fetch prints",
  });
});
