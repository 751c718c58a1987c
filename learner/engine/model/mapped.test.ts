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

/**
 * Computes log-probs, and generates on request, in a process of its own. Prints how many of its bytes are in no file, and the bytes of the
 * file that its mappings count, and that memory holds for it.
 */
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
const maps = fs.readFileSync("/proc/self/smaps", "utf8").split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m).filter((map) => /model.safetensors$/m.test(map));
const sum = (field) => maps.reduce((total, map) => total + 1024 * Number.parseInt(map.split("\\n" + field + ":")[1]), 0);
console.log(JSON.stringify({ copied: anonymous() - before, counted: sum("Rss"), held: sum("Pss") }));
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
    const found = execFileSync(process.execPath, args, { encoding: "utf8" });
    const { copied, counted, held } = JSON.parse(found) as Record<"copied" | "counted" | "held", number>;
    assert.ok(copied < most * size, `${copied} bytes beside the ${size} of the file`);
    // each session maps the file, and top counts each mapping
    if (also === "generate") assert.ok(counted > 1.5 * size, `${counted} bytes of mappings of a file of ${size}`);
    assert.ok(held > 0.8 * size && held < 1.01 * size, `memory holds ${held} bytes of a file of ${size}`);
  });
}
