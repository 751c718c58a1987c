/** Tests how a table of options reads a command line, what it refuses, and its help. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asksForHelp, helpOf } from "./command-help.ts";
import { parse, UsageError } from "./command-line.ts";

const COMMAND = {
  name: "longrun copy",
  description: "copies",
  arguments: { "<FROM>": "a file", "[TO]": "a place" },
  options: {
    "follow -f": "follow links",
    "out-dir -o <DIR>": { help: "where", default: "here" },
    "set <PATH=VALUE...>": "a field",
    "mode <MODE>": { help: "how", choices: ["fast", "safe"] },
    "count <N>": { help: "how many", default: "2", as: Number },
    "old <X>": { help: "an earlier name", hidden: true },
  },
  examples: ["longrun copy a"],
} as const;

test("values have the options' names in camel case, their types and their defaults", () => {
  const args = ["a", "-f", "-o", "x", "--set", "p=1", "--set=q=2", "b"];
  const { values, words } = parse(COMMAND, args);
  const expected = { follow: true, outDir: "x", set: ["p=1", "q=2"], mode: undefined, count: 2, old: undefined };
  assert.deepEqual({ ...values }, expected);
  assert.deepEqual(words, ["a", "b"]);
  const mode: "fast" | "safe" | undefined = parse(COMMAND, ["a", "--mode", "safe"]).values.mode;
  assert.equal(mode, "safe");
  assert.deepEqual(parse(COMMAND, ["a", "--", "-f"]).words, ["a", "-f"]);
});

const REQUIRED = { name: "longrun x", options: { "key <K>": { help: "a key", required: "a key" } } } as const;
for (const [args, message] of [
  [["a", "--folow"], "error: unknown option '--folow'\n(Did you mean --follow?)"],
  [["a", "--zzzzzzzz"], "error: unknown option '--zzzzzzzz'\nlongrun help copy says more"],
  [["a", "--mode"], "error: option '--mode <value>' argument missing\nlongrun help copy says more"],
  [["a", "--count", "-1"], "error: option '--count' has no value\n(Did you mean --count=-1?)"],
  [["a", "-o", "-x"], "error: option '-o' has no value\n(Did you mean -o-x?)"],
  [["a", "--count", "--mode", "fast"], "error: option '--count' has no value\nlongrun help copy says more"],
  [["a", "--mode", "slow"], "--mode is slow; give fast, safe"],
  [[], "error: missing required argument 'FROM'\nlongrun help copy says more"],
  [["a", "b", "c"], "error: too many arguments: expected 2, got 3\nlongrun help copy says more"],
] as [string[], string][])
  test(`the command line ${args.join(" ")} is refused`, () =>
    assert.throws(() => parse(COMMAND, args), { constructor: UsageError, message, code: "input" }));

test("a required option is refused where it is missing or empty", () => {
  for (const args of [[], ["--key", ""]])
    assert.throws(() => parse(REQUIRED, args), { message: "--key is missing; give a key" });
});

test("the help has usage, arguments, options with their facts, and examples, but no hidden option", () => {
  const help = helpOf(COMMAND);
  assert.match(help, /^Usage: longrun copy \[options\] <FROM> \[TO\]\n\ncopies\n\nArguments:\n {2}FROM {2}a file\n/);
  assert.match(help, /^ {2}-o, --out-dir <DIR> {2}where \(default: here\)$/m);
  assert.match(help, /^ {2}--mode <MODE> {8}how \(one of fast, safe\)$/m);
  assert.match(help, /\nExamples:\n {2}longrun copy a\n$/);
  assert.doesNotMatch(help, /--old/);
});

test("--help and -h ask for the help, but not behind --, where they are text", () => {
  for (const args of [["--help"], ["a", "-h"], ["-h", "--", "a"]]) assert.equal(asksForHelp(args), true);
  for (const args of [[], ["a"], ["a", "--", "--help", "-h"]]) assert.equal(asksForHelp(args), false);
});
