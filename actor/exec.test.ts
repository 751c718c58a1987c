import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseCpus, parseExecArguments, pythonOf } from "./exec.ts";
import { DEFAULT_LIMITS, limitsOf, parseLimits } from "./limits.ts";
import { shareCpus } from "./slots.ts";

const REQUIRED = ["--task", "t", "--program", "p.py", "--python", "/venv"];

describe("parseExecArguments", () => {
  const cases: [args: string[], message: RegExp][] = [
    [["--program", "p"], /--task is missing/],
    [["--task", "t"], /--program is missing/],
    [[...REQUIRED, "--frobnicate"], /frobnicate/],
    [[...REQUIRED, "--nonce", "xyz"], /--nonce must be 32/],
    [[...REQUIRED, "--limits", "{"], /--limits is not JSON/],
    [[...REQUIRED, "--limits", "[]"], /limits: must be a JSON object/],
    [[...REQUIRED, "--limits", '{"memory":1}'], /limits\.memory: no such limit; there are timeoutSeconds/],
    [[...REQUIRED, "--limits", '{"memoryBytes":0}'], /limits\.memoryBytes: is 0, must be a whole number above 0/],
    [[...REQUIRED, "--limits", '{"memoryBytes":1.5}'], /whole number/],
    [[...REQUIRED, "--limits", '{"timeoutSeconds":"1"}'], /limits\.timeoutSeconds: is "1", must be a number above 0/],
    [[...REQUIRED, "--seed", "-1"], /--seed/],
    [[...REQUIRED, "--isolation", "total"], /--isolation: is total, must be one of namespaces, landlock, none/],
    [[...REQUIRED, "--cpus", "a"], /--cpus: "a"/],
  ];
  for (const [args, message] of cases)
    test(`the command line is refused: ${args.join(" ")}`, () =>
      assert.throws(() => parseExecArguments(args), { message }));

  test("options that are left out have their defaults", () => {
    const parsed = parseExecArguments(REQUIRED);
    assert.deepEqual(
      [parsed.limits, parsed.seed, parsed.nonce, parsed.isolation, parsed.cpus],
      [DEFAULT_LIMITS, 0, "", undefined, undefined],
    );
  });
});

describe("parseCpus", () => {
  const cases: [string, number[] | undefined][] = [
    ["", undefined],
    ["0", [0]],
    ["0,2-4", [0, 2, 3, 4]],
    ["3,3", [3]],
  ];
  for (const [text, expected] of cases)
    test(`--cpus ${text} names [${expected}]`, () => assert.deepEqual(parseCpus(text, "--cpus"), expected));
});

test("shareCpus gives each slot its own processors if there are enough", () => {
  assert.deepEqual(shareCpus([0, 1, 2, 3], 1, 2), { cpus: [2, 3], cpusPerSlot: 2 });
  assert.deepEqual(shareCpus([0, 1, 2], 2, 3), { cpus: [2], cpusPerSlot: 1 });
  assert.deepEqual(shareCpus([5], 1, 2), { cpus: [5], cpusPerSlot: 1 });
  assert.deepEqual(shareCpus(undefined, 0, 2), { cpus: undefined, cpusPerSlot: 1 });
});

test("zero and absent limits of a lease mean the default, and 64-bit objects become numbers", () => {
  const long = { toString: () => "123" };
  const limits = limitsOf({ timeoutSeconds: 0, memoryBytes: long, outputBytes: null });
  assert.deepEqual(limits, { ...DEFAULT_LIMITS, memoryBytes: 123 });
  assert.deepEqual(parseLimits({}), DEFAULT_LIMITS);
});

test("an environment's folder and an interpreter both name the interpreter", () => {
  assert.equal(pythonOf("/venv"), "/venv/bin/python");
  assert.equal(pythonOf("/usr/bin/python3.11"), "/usr/bin/python3.11");
});
