import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { MappedWeights } from "../engine/model/mapped.ts";
import { file, LLAMA, longrun, POLICY, root, write } from "./command.fixture.ts";
import { readLines, refuseOtherFields, tokensOf } from "./command.ts";

interface Case {
  prompt: number[];
  greedy: number[];
  logProbs: Record<string, number[]>;
}
const { cases } = JSON.parse(fs.readFileSync(path.join(LLAMA, "reference.json"), "utf8")) as { cases: Case[] };

describe("a line is refused with its number", () => {
  const good = { tokens: [1] };
  for (const [line, message] of [
    ["{", /lines.jsonl, line 2: not JSON/],
    ["", /line 2: not JSON/],
    ["[1]", /line 2: expected a JSON object/],
    ["null", /line 2: expected a JSON object/],
    [{}, /line 2: tokens is missing; expected a list of token ids/],
    [{ tokens: "1 2" }, /line 2: tokens is "1 2"/],
    [{ tokens: [] }, /line 2: tokens is empty/],
    [{ tokens: [1, 160] }, /line 2: tokens\[1\] is 160; token ids are whole numbers from 0 to 159/],
    [{ tokens: [-1] }, /line 2: tokens\[0\] is -1/],
    [{ tokens: [1.5] }, /line 2: tokens\[0\] is 1.5/],
    [{ tokens: [null] }, /line 2: tokens\[0\] is null/],
    [{ tokens: ["1"] }, /line 2: tokens\[0\] is "1"/],
    [{ tokens: [1], text: "x" }, /line 2: unknown field "text"; known are tokens/],
  ] as [unknown, RegExp][]) {
    it(JSON.stringify(line), () => {
      write(good, line, good);
      const read = () => {
        for (const entry of readLines(file)) {
          refuseOtherFields(entry, ["tokens"]);
          tokensOf(entry, 160);
        }
      };
      assert.throws(read, { message });
    });
  }
});

describe("longrun logprobs", () => {
  it("answers each line in order with transformers' numbers", () => {
    const sequences = cases.map(({ prompt, greedy }) => [...prompt, ...greedy]);
    write(...sequences.map((tokens) => ({ tokens })), { tokens: [3] });
    const { status, lines, stderr } = longrun("logprobs", "--model", LLAMA, "--tokens", file);
    assert.equal(status, 0, stderr);
    assert.equal(lines.length, cases.length + 1);
    assert.equal(lines.at(-1), '{"logProbs":[]}');
    for (const [i, { prompt, logProbs }] of cases.entries()) {
      const actual = (JSON.parse(lines[i]) as { logProbs: number[] }).logProbs;
      assert.equal(actual.length, sequences[i].length - 1);
      const response = actual.slice(prompt.length - 1);
      for (const [t, expected] of logProbs["1.0"].entries()) assert.ok(Math.abs(response[t] - expected) < 1e-4);
    }
  });

  it("writes nothing when a line is bad, and exits 2", () => {
    write({ tokens: [1, 2] }, { tokens: [1, 2000] });
    const { status, lines, stderr } = longrun("logprobs", "--model", LLAMA, "--tokens", file);
    assert.deepEqual([status, lines], [2, [""]]);
    assert.match(stderr, /^\S+lines.jsonl, line 2: tokens\[1\] is 2000; [^\n]+\n$/);
    write({ tokens: [1, 2] }, { tokens: new Array(513).fill(1) });
    const long = longrun("logprobs", "--model", LLAMA, "--tokens", file);
    assert.deepEqual([long.status, long.lines], [2, [""]]);
    assert.match(long.stderr, /^\S+lines.jsonl, line 2: it has 513 tokens; the model has 512 positions\n$/);
  });
});

describe("--device", () => {
  for (const [device, message] of [
    ["gpu", /^the device is gpu; give auto, cpu, cuda, cuda:N or several GPUs, such as cuda:0,1\n$/],
    ["cuda:999", /^cuda:999 cannot be used: [^\n]+\n$/], // no machine has as many
  ] as [string, RegExp][]) {
    it(`${device} is refused in one line`, () => {
      const { status, lines, stderr } = longrun(
        ...(["logprobs", "--model", LLAMA, "--tokens", write({ tokens: [1] }), "--device", device] as const),
      );
      assert.deepEqual([status, lines], [2, [""]]);
      assert.match(stderr, message);
    });
  }
});

describe("longrun serve --tls", () => {
  it("refuses a folder without certificates", () => {
    const args = ["--model", LLAMA, "--device", "cpu", "--slots", "2", "--tls", path.join(root, "no-tls")];
    const { status, stderr } = longrun("serve", ...args);
    assert.match(stderr, /no-tls\/ca\.crt cannot be read: --tls must name a folder with ca\.crt/);
    assert.equal(status, 2);
  });
});

describe("longrun generate", () => {
  it("writes greedy tokens without a tokenizer", () => {
    write(...cases.map(({ prompt }) => ({ tokens: prompt })));
    const args = ["--model", LLAMA, "--prompts", file, "--max-tokens", "72", "--temperature", "0"];
    const { status, lines, stderr } = longrun("generate", ...args);
    assert.equal(status, 0, stderr);
    for (const [i, { greedy, logProbs }] of cases.entries()) {
      const answer = JSON.parse(lines[i]) as { tokens: number[]; text: null; logProbs: number[] };
      assert.deepEqual([answer.tokens, answer.text], [greedy, null]);
      for (const [t, expected] of logProbs["1.0"].entries()) assert.ok(Math.abs(answer.logProbs[t] - expected) < 1e-4);
    }
  });

  it("answers messages with text, and equal lines with samples of their own", () => {
    const question = { messages: [{ role: "user", content: "Predict the price." }] };
    write(question, question);
    const first = longrun("generate", "--model", POLICY, "--prompts", file, "--max-tokens", "12", "--seed", "1");
    assert.equal(first.status, 0, first.stderr);
    const answers = first.lines.map(
      (line) => JSON.parse(line) as { tokens: number[]; text: string; logProbs: number[] },
    );
    for (const { tokens, text, logProbs } of answers) assert.ok(tokens.length === logProbs.length && text.length > 0);
    assert.notDeepEqual(answers[0].tokens, answers[1].tokens);
  });

  it("without --max-tokens fills the rest of each line's own context", () => {
    const short = { tokens: [5, 6, 7] };
    const long = { tokens: Array.from({ length: 502 }, (_, i) => i % 90) };
    const ask = (...lines: unknown[]) => {
      const { lines: answers, status, stderr } = longrun("generate", "--model", LLAMA, "--prompts", write(...lines));
      assert.equal(status, 0, stderr);
      return answers.map((answer) => JSON.parse(answer) as { tokens: number[] });
    };
    const [alone] = ask(short);
    const [among, cut] = ask(short, long);
    assert.deepEqual(among!.tokens, alone!.tokens);
    assert.ok(alone!.tokens.length > 10 && cut!.tokens.length <= 10, `${alone!.tokens.length}, ${cut!.tokens.length}`);
  });

  for (const [line, args, message] of [
    [{ messages: [{ role: "user", content: "x" }] }, [], /line 1: messages need a tokenizer/],
    [
      { tokens: [1] },
      ["--temperature", "1e-40"],
      /^--temperature is 1e-40; give 0 for .* or a number of at least 0.01\n$/,
    ],
    [{ tokens: [1] }, ["--temperature", " "], /^--temperature is {2}; give 0 for/],
    [{ tokens: [1] }, ["--max-tokens", "512"], /line 1: its prompt and --max-tokens are 513 tokens; .* 512 positions/],
  ] as [unknown, string[], RegExp][]) {
    it(`refuses ${message}`, () => {
      const { status, lines, stderr } = longrun("generate", "--model", LLAMA, "--prompts", write(line), ...args);
      assert.deepEqual([status, lines], [2, [""]]);
      assert.match(stderr, message);
    });
  }
});

describe("commands refuse a damaged folder in one line:", () => {
  const STORED = new MappedWeights(LLAMA).tensors[3];
  for (const [damage, at, bytes, message] of [
    ["a weight that is NaN", STORED.offset, Float32Array.of(Number.NaN), `${STORED.name} holds NaN at index 0; the we`],
    ["a header that lies", 0, BigUint64Array.of(1_000_000_000n), "its header claims 1000000000 bytes, the file has"],
  ] as const) {
    const folder = path.join(root, damage);
    fs.cpSync(LLAMA, folder, { recursive: true });
    const weights = fs.openSync(path.join(folder, "model.safetensors"), "r+");
    fs.writeSync(weights, bytes, 0, bytes.byteLength, at);
    fs.closeSync(weights);
    for (const [command, ...args] of [
      ["logprobs", "--model", folder, "--tokens", file],
      ["generate", "--model", folder, "--prompts", file],
      ["model", "info", folder, "--check"],
    ]) {
      it(`${command}: ${damage}`, () => {
        write({ tokens: [1, 2, 3] });
        const { status, lines, stderr } = longrun(command, ...args);
        assert.deepEqual([status, lines], [2, [""]]);
        assert.ok(stderr.includes(message), stderr);
        assert.equal(stderr.split("\n").length, 2);
      });
    }
  }
});
