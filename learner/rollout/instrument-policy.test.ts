import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NONCE_PLACEHOLDER } from "./instrument.ts";
import { checkInstrumenter, instrumentAll, instrumentMessages, type StaticPolicy } from "./instrument-policy.ts";
import { parseSolution } from "./solution.ts";

const program = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\nx = train.shape\n";
const marked = program.replace("x = ", 'print("loaded data")\nx = ');
const block = (code: string) => `\`\`\`python\n${code}\`\`\`\n`;

/** Returns a policy whose tokens are characters, with given answers: one per program, or one for all. */
function scripted(answer: string | ((prompt: string) => string), limits: Partial<StaticPolicy> = {}) {
  const prompts: string[] = [];
  const policy: StaticPolicy = {
    encode: (messages) => Int32Array.from(messages.map(({ content }) => content).join("\n"), (c) => c.codePointAt(0)!),
    decode: (tokens) => String.fromCodePoint(...tokens),
    generate: async (asked, maxNewTokens) =>
      asked.map((tokens) => {
        const prompt = String.fromCodePoint(...tokens);
        prompts.push(prompt);
        const whole = typeof answer === "string" ? answer : answer(prompt);
        const response = Int32Array.from(whole.slice(0, maxNewTokens), (c) => c.codePointAt(0)!);
        return { response, finished: whole.length <= maxNewTokens };
      }),
    maxPromptTokens: 4000,
    maxResponseTokens: 2048,
    ...limits,
  };
  return { policy, prompts };
}

describe("the static policy", () => {
  it("inserts the markers if its answer is the program with prints of markers", async () => {
    const { policy, prompts } = scripted(`Sure!\n${block(marked)}`);
    const [instrumented] = await instrumentAll([program], "StaticPolicy", policy);
    assert.deepEqual(instrumented, {
      program: program.replace("x = ", `print("${NONCE_PLACEHOLDER}:loaded data", flush=True)\nx = `),
      markers: ["loaded data"],
      instrumenter: "StaticPolicy",
      verificationFailures: 0,
    });
    assert.ok(prompts[0].includes(`\`\`\`python\n${program}\`\`\``));
  });

  for (const [what, answer, limits, fault, failures] of [
    ["changes the program", block(marked.replace("train.csv", "test.csv")), {}, "changed", 1],
    ["prints a call", block(program.replace("x = ", 'print("loaded data", len(train))\nx = ')), {}, "expression", 1],
    ["prints an unknown name", block(`${program}print("training loss:", loss)\n`), {}, "unboundValue", 1],
    ["breaks the program", block(program.replace("x = ", '  print("loaded data")\nx = ')), {}, "misplaced", 1],
    ["gives no code", "I would rather not.", {}, "noCodeBlock", 1],
    ["inserts nothing", block(program), {}, "noMarkers", 0],
    ["is cut off", block(marked), { maxResponseTokens: 40 }, "cutOff", 0],
    ["is not asked: the prompt is too long", block(marked), { maxPromptTokens: 1000 }, "promptTooLong", 0],
  ] as const)
    it(`leaves the program to Syntax when it ${what}`, async () => {
      const { policy, prompts } = scripted(answer, limits);
      const [instrumented] = await instrumentAll([program], "StaticPolicy", policy);
      assert.equal(instrumented.instrumenter, "Syntax");
      assert.deepEqual(instrumented.markers, ["imported packages", "loaded data"]);
      assert.equal(instrumented.fault, fault);
      assert.equal(instrumented.verificationFailures, failures);
      assert.equal(prompts.length, fault === "promptTooLong" ? 0 : 1);
    });

  it("leaves a program that cannot be parsed as it is", async () => {
    const { policy } = scripted(block('x = (\nprint("loaded data")\n'));
    const [instrumented] = await instrumentAll(["x = (\n"], "StaticPolicy", policy);
    assert.equal(instrumented.program, "x = (\n");
    assert.equal(instrumented.instrumenter, "None");
    assert.equal(instrumented.fault, "misplaced");
  });

  it("takes an answer that ends at its limit if its block is closed", async () => {
    const answer = block(marked);
    const { policy } = scripted(`${answer}and so on`, { maxResponseTokens: answer.length });
    const [instrumented] = await instrumentAll([program], "StaticPolicy", policy);
    assert.equal(instrumented.instrumenter, "StaticPolicy");
  });

  it("answers all programs in one batch, in their order", async () => {
    let batches = 0;
    const programs = ["a = 1\n", `b = 2  # ${"long ".repeat(1000)}\n`, "c = 3\n", `d = "${NONCE_PLACEHOLDER}"\n`];
    const { policy } = scripted((prompt) => {
      const [own] = programs.filter((each) => prompt.includes(each));
      return own.startsWith("c") ? "no" : block(`${own}print("defined model")\n`);
    });
    const { generate } = policy;
    policy.generate = (...call) => {
      batches += 1;
      return generate(...call);
    };
    const all = await instrumentAll(programs, "StaticPolicy", policy);
    assert.deepEqual(
      all.map(({ instrumenter, fault }) => [instrumenter, fault]),
      [
        ["StaticPolicy", undefined],
        ["None", "promptTooLong"],
        ["None", "noCodeBlock"],
        ["None", undefined],
      ],
    );
    assert.equal(all[3].program, programs[3]);
    assert.equal(batches, 1);
  });

  it("is not asked if rules instrument, if the instrumenter is None, or without a program", async () => {
    const { policy, prompts } = scripted(block(marked));
    assert.equal((await instrumentAll([program], "Syntax", policy))[0].instrumenter, "Syntax");
    assert.equal((await instrumentAll([program], "None", policy))[0].program, program);
    policy.generate = () => assert.fail("asked for nothing");
    assert.deepEqual(await instrumentAll([], "StaticPolicy", policy), []);
    assert.deepEqual(prompts, []);
  });

  it("is refused if its limits exceed the model's context", () => {
    const model = {
      instrumenter: "StaticPolicy",
      instrumenterMaxPromptTokens: 600,
      instrumenterMaxResponseTokens: 500,
    } as const;
    checkInstrumenter(model, 1100);
    checkInstrumenter({ ...model, instrumenter: "Syntax" }, 10);
    assert.throws(() => checkInstrumenter(model, 1099), {
      code: "instrumenter",
      message: /instrumenterMaxPromptTokens .* 600 \+ 500 tokens, but .* 1099 positions .*: lower them/,
    });
  });
});

describe("the prompt of Appendix C.3", () => {
  const [{ content }] = instrumentMessages("x = '```'\n<|im_end|>\n");

  it("asks for the seven markers", () => {
    assert.match(content, /^Please insert print statements in the given python script\./);
    for (const marker of [
      "imported packages",
      "loaded data",
      "defined model",
      "training loss:",
      "trained model",
      "testing loss:",
      "predicted test labels",
    ])
      assert.ok(content.includes(`- print("${marker}")\n`), marker);
  });

  it("holds the program in a fence that it cannot close", () => {
    assert.deepEqual(parseSolution(content), {
      plan: content.slice(0, content.indexOf("\n\n````")).trim(),
      program: "x = '```'\n<|im_end|>\n",
    });
  });
});
