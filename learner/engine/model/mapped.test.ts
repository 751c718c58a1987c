import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, it } from "node:test";
import { configJson, parseConfig } from "./config.ts";
import { saveWeights } from "./files.ts";
import { elementCount, parameters } from "./weights.ts";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "mapped-"));
after(() => fs.rmSync(folder, { recursive: true }));

const config = parseConfig({
  ...{ model_type: "qwen2", vocab_size: 1024, hidden_size: 768, intermediate_size: 3072, num_hidden_layers: 4 },
  ...{ num_attention_heads: 12, num_key_value_heads: 12 },
});

/** Computes log-probs, and generates on request, in a process of its own; prints how many of its bytes are in no file. */
const PROGRAM = `
import fs from "node:fs";
import { FROZEN } from ${JSON.stringify(new URL("../engine.ts", import.meta.url))};
import { localEngine } from ${JSON.stringify(new URL("../local.ts", import.meta.url))};
const anonymous = () => 1024 * Number(/^Pss_Anon:\\s+(\\d+)/m.exec(fs.readFileSync("/proc/self/smaps_rollup", "utf8"))[1]);
const before = anonymous();
const engine = localEngine({ model: process.argv[1], threads: 1, adapter: FROZEN });
const prompt = Int32Array.of(1, 2);
await engine.evaluate([{ prompt, response: prompt }], { temperature: 1, values: false, reference: false });
if (process.argv[2] === "generate")
  await engine.generate([prompt], { seeds: [1], temperature: 0, topP: 1, maxNewTokens: 1, weights: "reference" });
console.log(anonymous() - before);
process.exit(); // without the time that releasing takes
`;

const skip = fs.existsSync("/proc/self/smaps_rollup") ? false : "needs /proc/self/smaps_rollup";

for (const [dtype, also, most, why] of [
  // three sessions with copies would be 3 sizes; the rest is the sessions themselves
  ["F32", "generate", 0.35, "by several sessions and copied by none"],
  // a float32 copy of all weights would be 2 sizes; one layer's is 0.5
  ["BF16", "", 1.2, "in half precision and cast layer by layer"],
] as const) {
  it(`weights are used ${why}`, { skip }, () => {
    fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config)));
    const tensors = parameters(config).map(({ name, shape }) => ({
      name,
      shape,
      read: () => new Float32Array(elementCount(shape)).fill(0.01),
    }));
    saveWeights(folder, tensors, { dtype });
    const { size } = fs.statSync(path.join(folder, "model.safetensors"));
    const args = ["--input-type=module", "--eval", PROGRAM, folder, also];
    const copied = Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
    assert.ok(copied < most * size, `${copied} bytes beside the ${size} of the file`);
  });
}
