import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import type { GpuEntry } from "../engine/gpu-table.ts";
import { writeGgufModel } from "../engine/model/gguf.fixture.ts";
import { ASKED, fixture, LLAMA, longrun, POLICY, QWEN, root, write } from "./command.fixture.ts";

describe("longrun model", () => {
  it("describes a folder", () => {
    const { status, lines, stderr } = longrun("model", "info", fixture("saved/qwen3"), "--check", "--json");
    assert.equal(status, 0, stderr);
    const { architecture, parameters, bytes, dtypes, eosIds, files } = JSON.parse(lines[0]);
    assert.deepEqual(
      { architecture, parameters, bytes, dtypes, eosIds, files },
      { architecture: "qwen3", parameters: 7024, bytes: 14048, dtypes: { bfloat16: 7024 }, eosIds: [5, 7], files: 2 },
    );
  });

  it("names the tokens that end a text, and warns if the chat template's is none of them", () => {
    const folder = path.join(root, "other-end");
    fs.cpSync(POLICY, folder, { recursive: true });
    fs.writeFileSync(path.join(folder, "generation_config.json"), '{"eos_token_id":0}');
    const shown = (of: string) => longrun("model", "info", of).lines;
    assert.ok(shown(POLICY).includes("end of text   2 <|im_end|> (generation_config.json)"));
    assert.ok(!shown(POLICY).some((line) => line.startsWith("warning")));
    assert.ok(shown(folder).includes("end of text   0 <|endoftext|> (generation_config.json)"));
    assert.ok(shown(folder).some((line) => /^warning +.* ends an answer with <\|im_end\|> \(2\), but only/.test(line)));
    assert.ok(
      shown(LLAMA).includes("end of text   none: no file of the folder names one"),
      "a folder without a tokenizer",
    );
    fs.writeFileSync(path.join(folder, "generation_config.json"), '{"eos_token_id":null}');
    assert.ok(shown(folder).includes("end of text   2 <|im_end|> (config.json)"));
    fs.writeFileSync(path.join(folder, "generation_config.json"), '{"eos_token_id":0}');
    const damaged = path.join(root, "damaged-tokenizer");
    fs.cpSync(POLICY, damaged, { recursive: true });
    fs.writeFileSync(path.join(damaged, "tokenizer.json"), "{");
    assert.ok(shown(damaged).some((line) => /^warning +.*tokenizer.json is not usable JSON/.test(line)));
    const { eosIds, eosTokens, warning } = JSON.parse(longrun("model", "info", folder, "--json").lines[0]!);
    assert.deepEqual([eosIds, eosTokens, typeof warning], [[0], ["<|endoftext|>"], "string"]);
  });

  it("plans the memory of training it", () => {
    const { status, lines, stderr } = longrun("model", "info", POLICY, "--plan", "lora", "--tokens", "64:64");
    assert.equal(status, 0, stderr);
    const plan = lines.slice(
      lines.findIndex((line) => /^memory plan: \d+ MB of .*; micro-batches of \d+ tokens$/.test(line)),
    );
    const rows = ["process", "weights", "gradients", "optimiser", "activations", "logits", "cache", "generation"];
    assert.deepEqual(
      plan.slice(1).map((line) => line.slice(2, 15).trim()),
      rows,
    );
  });

  it("needs config.json alone and plans without weights", () => {
    const there = ["--gpus", "2", "--memory-bytes", "24GB", "--compute", "BFloat16"];
    const { status, lines, stderr } = longrun("model", "info", QWEN, "--plan", "lora", ...there, "--json");
    assert.equal(status, 0, stderr);
    const { parameters, files, bytes, plan } = JSON.parse(lines[0]!);
    assert.deepEqual([parameters, files, bytes], [494_032_768, 0, 2 * 494_032_768]); // 0.49B, says the model's card
    const weights = plan.rows.find(({ what }: { what: string }) => what === "weights");
    assert.ok(weights.gpuBytes > bytes && weights.gpuBytes < 1.2 * bytes, "bfloat16, once, and adapters");
  });

  it("prints the plans for GPUs of each number and size", () => {
    const { status, lines, stderr } = longrun("model", "info", "--json", "--plan", POLICY, "--batch", "4096");
    assert.equal(status, 0, stderr);
    const { table } = JSON.parse(lines[0]!);
    assert.equal(table.length, 2 * 4 * 4);
    const entry = (trained: string, gpus: number, gigabytes: number) =>
      table.find((it: GpuEntry) => it.trained === trained && it.gpus === gpus && it.gigabytes === gigabytes);
    const there = ["--gpus", "2", "--memory-bytes", "24GB", "--compute", "BFloat16", "--batch", "4096"];
    const one = longrun("model", "info", POLICY, "--plan", "lora", ...there, "--json");
    assert.equal(
      JSON.parse(one.lines[0]!).plan.gpuBytes,
      entry("LoRA", 2, 24).gpuBytes,
      "as the plan of these GPUs says",
    );
    const printed = longrun("model", "info", POLICY, "--plan", "--batch", "4096").lines;
    const row = printed.find((line) => line.startsWith("every weight, 40 GB each"))!;
    const numbers = [1, 2, 4, 8].map((count) => (entry("every weight", count, 40).gpuBytes / 1e9).toFixed(1));
    assert.deepEqual(row.split(/ {2,}/).slice(1, -1), numbers);
  });

  it("plans for a GPU of another machine without asking a GPU", () => {
    const there = ["--device", "cuda:7", "--memory-bytes", "80e9", "--batch", "16"];
    const { status, lines, stderr } = longrun("model", "info", POLICY, "--plan", "lora", ...there, "--json");
    assert.equal(status, 0, stderr);
    const { positions, plan } = JSON.parse(lines[0]);
    assert.deepEqual([positions, plan.device], [1024, { kind: "cuda", id: 7 }]);
    assert.ok(plan.gpuBytes > plan.hostBytes, `${plan.gpuBytes} of it on the GPU`);
    const { detail } = plan.rows.find(({ what }: { what: string }) => what === "cache");
    assert.equal(detail, "KV cache of 16 x 1024 tokens"); // the most that the model takes
    assert.equal(fs.existsSync(ASKED), false);
  });

  it("names the part that does not fit", () => {
    const { status, lines, stderr } = longrun("model", "info", POLICY, "--plan", "full", "--memory-bytes", "0.5 GB");
    assert.equal(status, 2);
    assert.match(lines[0], /^architecture +qwen2, /);
    assert.ok(!lines.some((line) => line.startsWith("memory plan")));
    assert.match(stderr, /^the run needs about .* of memory, but 500 MB is given; the largest parts, [^\n]+\n$/);
  });

  it("converts into shards and leaves no part of a failed conversion", () => {
    const out = path.join(root, "converted");
    const done = longrun("model", "convert", LLAMA, "--out", out, "--dtype", "bfloat16", "--shard-size", "20KB");
    assert.equal(done.status, 0, done.stderr);
    const files = fs.readdirSync(out).filter((name) => name.endsWith(".safetensors")).length;
    assert.ok(files > 1);
    assert.deepEqual(done.lines, [`${out}: ${files} files of weights`]);
    assert.equal(longrun("model", "info", out).status, 0);

    const large = path.join(root, "large");
    fs.cpSync(LLAMA, large, { recursive: true });
    const weights = path.join(large, "model.safetensors");
    const bytes = fs.readFileSync(weights);
    const header = 8 + Number(bytes.readBigUInt64LE(0));
    bytes.writeFloatLE(3.4e38, header);
    fs.writeFileSync(weights, bytes);
    const again = path.join(root, "again");
    const failed = longrun("model", "convert", large, "--out", again, "--dtype", "bfloat16");
    assert.match(
      failed.stderr,
      /holds 3\.39\d*e\+38 at index 0, which bfloat16 cannot: write another dtype \(--dtype\)\n$/,
    );
    assert.equal(failed.status, 2);
    assert.ok(!fs.existsSync(again));
    const whole = longrun("model", "convert", large, "--out", again);
    assert.equal(whole.status, 0, whole.stderr);
  });

  it("refuses impossible requests in one line", () => {
    for (const [args, message] of [
      [
        ["info", path.join(root, "none")],
        /cannot read .*config.json: there is no folder \S+none; give a model folder in/,
      ],
      [["info", POLICY, "--plan", "half"], /--plan is half; give full or lora/],
      [["info", POLICY, "--plan", "full", "--tokens", "5"], /--tokens is 5; give PROMPT:RESPONSE/],
      [
        ["info", POLICY, "--plan", "full", "--tokens", "600:600"],
        /^--tokens 600:600: model.maxPromptTokens and model.maxResponseTokens are .* has 1024 positions .*: set /,
      ],
      [["info", POLICY, "--plan", "full", "--batch", "0"], /--batch is 0; give a whole number of at least 1/],
      [["info", POLICY, "--plan", "full", "--device", "cuda:0"], /--memory-bytes is missing; give what each GPU has/],
      [["info", POLICY, "--plan", "full", "--gpus", "17"], /--gpus is 17; give a whole number of at most 16/],
      [
        ["info", POLICY, "--plan", "--gpus", "2"],
        /--gpus is of one plan, and --plan alone has all; say --plan full or/,
      ],
      [["info", POLICY, "--plan", "full", "--compute", "BFloat16"], /--compute is BFloat16, which needs a GPU/],
      [["info", QWEN, "--check"], /--check: \S+ has no weights; longrun model fetch fetches a whole model/],
      [["info", POLICY, "--gpus", "2"], /--gpus is of a plan; give --plan, --plan full or --plan lora/],
      [
        ["info", POLICY, "--memory-bytes", "80GB"],
        /--memory-bytes is of a plan; give --plan, --plan full or --plan lora/,
      ],
      [["convert", LLAMA, "--out", root], /is there already; give a new or empty folder/],
    ] as [string[], RegExp][]) {
      const { status, stderr } = longrun("model", ...args);
      assert.equal(status, 2);
      assert.match(stderr, message);
      assert.equal(stderr.trimEnd().split("\n").length, 1);
    }
  });
});

describe("what a model reads", () => {
  it("model tokenize prints the tokens of a text", () => {
    const { lines, status } = longrun("model", "tokenize", POLICY, "import pandas", "as pd");
    assert.equal(status, 0);
    assert.match(lines.at(-1)!, /^\d+ tokens$/);
    assert.equal(
      lines
        .slice(0, -1)
        .map((line) => JSON.parse(line.trim().replace(/^\d+ +/, "")))
        .join(""),
      "import pandas as pd",
    );
    const { ids, texts } = JSON.parse(longrun("model", "tokenize", "--json", POLICY, "print(1)").lines[0]!);
    assert.equal(texts.join(""), "print(1)");
    assert.ok(ids.length === texts.length && ids.every(Number.isInteger));
  });

  it("generate --show-prompt shows the text that the model continues", () => {
    const prompts = write({ messages: [{ role: "user", content: "Hello" }] });
    const shown = ["--model", POLICY, "--prompts", prompts, "--max-tokens", "1"];
    const [answer] = longrun("generate", ...shown, "--show-prompt").lines;
    assert.match(JSON.parse(answer!).prompt, /^<\|im_start\|>[\s\S]*Hello<\|im_end\|>\n<\|im_start\|>assistant\n$/);
    assert.ok(!("prompt" in JSON.parse(longrun("generate", ...shown).lines[0]!)));
  });

  it("a GGUF file is refused with its conversion", () => {
    const { stderr, status } = longrun("model", "info", "models/tiny.gguf");
    assert.match(
      stderr,
      /models\/tiny\.gguf is a GGUF file.*model convert models\/tiny\.gguf --tokenizer DIR --out OUT/,
    );
    assert.notEqual(status, 0);
  });

  it("convert makes a folder of a GGUF file and a tokenizer's folder", () => {
    const { file, folder } = writeGgufModel(root, "qwen3");
    const convert = (...args: string[]) => longrun("model", "convert", ...args);
    const out = path.join(root, "of-gguf");
    assert.match(convert(file, "--out", out).stderr, /is a GGUF file.*--tokenizer DIR/);
    const missing = convert(path.join(root, "no.gguf"), "--tokenizer", folder, "--out", out);
    assert.match(missing.stderr, /no\.gguf: there is no such file/);
    assert.match(convert(folder, "--tokenizer", folder, "--out", out).stderr, /--tokenizer is for GGUF files/);
    const { status, stderr } = convert(file, "--tokenizer", folder, "--out", out);
    assert.equal(status, 0, stderr);
    const { lines } = longrun("model", "info", out, "--check", "--json");
    assert.deepEqual(Object.keys(JSON.parse(lines[0]!).dtypes), ["bfloat16"]);
  });
});
