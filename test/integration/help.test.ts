/** Tests `longrun help COMMAND`, also for commands that are programs of other parts. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { commandsOf } from "../../controller/cli/commands.ts";
import { completionScript } from "../../controller/cli/completion.ts";
import { PARTS } from "../../controller/parts.ts";
import { wordOf } from "../../proto/command-line.ts";
import { missingTools } from "../tools.ts";

const CLI = fileURLToPath(new URL("../../controller/cli.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const longrun = (...args: string[]) => promisify(execFile)(process.execPath, [CLI, ...args]);

const commands = commandsOf(PARTS).map(({ command }) => command);

describe("longrun help", { concurrency: 2 }, () => {
  for (const name of commands.map(wordOf))
    test(`The help of ${name} has the usage, every option that completion knows, and examples`, async () => {
      const { stdout, stderr } = await longrun("help", name);
      assert.equal(stderr, "");
      assert.doesNotMatch(stdout, /default: \[\]/);
      assert.match(stdout, new RegExp(`^Usage: longrun ${name}\\b`));
      const [help = "", examples = ""] = stdout.split("\nExamples:\n");
      const optionsOf = (text: string) => new Set(text.match(/--[a-z][-a-z]*/g));
      const known = [...optionsOf(wordsOf(name).join(" "))];
      // A description may name another command's option; every option that completion offers must appear.
      assert.deepEqual(
        known.filter((option) => option !== "--help" && !optionsOf(help).has(option)),
        [],
      );
      assert.match(examples, /^( {2}\S.*\n)+$/);
      for (const line of examples.trimEnd().split("\n")) {
        assert.match(line, new RegExp(`longrun ${name}\\b`));
        for (const option of optionsOf(line)) assert.ok(known.includes(option), `${line}: ${option}`);
      }
    });

  test("The help of exec says where a program finds its data", async () =>
    assert.match((await longrun("help", "exec")).stdout, /public files in \.\/input\/ and writes \.\/submission\.csv/));

  test("The help of an unknown command refuses it, and suggests a similar one", async () => {
    const refused = { code: 2, stdout: "", stderr: "error: unknown command 'modle'\n(Did you mean model?)\n" };
    await assert.rejects(longrun("help", "modle"), refused);
    const stderr = "error: unknown command 'foo'\nlongrun help lists the commands\n";
    await assert.rejects(longrun("help", "foo"), { ...refused, stderr });
  });

  for (const [command, words] of [
    ["task", "init, generate, check, prompt or drop"],
    ["model", "fetch, info, tokenize, convert or merge"],
    ["results", "push or pull"],
  ])
    test(`A misspelt word after ${command} is refused in one line`, async () => {
      const stderr = `longrun ${command} chek: give ${words}; longrun help ${command} says more\n`;
      await assert.rejects(longrun(command!, "chek", "x"), { code: 2, stdout: "", stderr });
    });

  test("--version prints the package's version", async () =>
    assert.match((await longrun("--version")).stdout, /^\d+\.\d+\.\d+\n$/));
});

/** Returns the words that the bash script offers after `longrun NAME`. */
function wordsOf(name: string): string[] {
  const [, first = "", options = ""] =
    new RegExp(`^ +${name}\\) first='(.*)' options='(.*)' kind`, "m").exec(completionScript("bash", commands)) ?? [];
  return `${first} ${options}`.split(" ");
}

test("--model and --task take the names of bundled policies and tasks, also before they are prepared", async () => {
  const { stdout } = await longrun("model", "info", "quickstart");
  assert.match(stdout, /^architecture {2}qwen2/);
  const empty = { ...process.env, LONGRUN_CACHE: "/nonexistent" };
  const inEmpty = (...args: string[]) => promisify(execFile)(process.execPath, [CLI, ...args], { env: empty });
  await assert.rejects(inEmpty("task", "check", "wage"), {
    code: 2,
    stderr: "wage: this bundled task is not prepared yet; prepare it with: longrun prepare wage\n",
  });
  await assert.rejects(inEmpty("task", "check", "nope"), {
    code: 2,
    stderr: "nope: there is no such folder, and no bundled task of this name; there are diamonds, movie, wage\n",
  });
});

test("task counts tokens with the tokenizer of a bundled policy, and refuses another task's name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "longrun-help-"));
  try {
    const table = Array.from({ length: 40 }, (_, row) => `${row},${3 * row}\n`).join("");
    writeFileSync(join(folder, "table.csv"), `x,y\n${table}`);
    const made = ["--from", join(folder, "table.csv"), "--target", "y", "--metric", "RMSE", "--model", "quickstart"];
    const { stdout } = await longrun("task", "init", join(folder, "own"), ...made, "--max-tokens", "4000");
    assert.match(stdout, /^prompt {4}\d+ tokens of 4000$/m);
    await assert.rejects(longrun("task", "check", join(folder, "own"), "--task", "other"), {
      code: 2,
      stderr: `--task other: ${join(folder, "own")} is the task own; leave out --task\n`,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("git ignores the files that commands create by default", { skip: missingTools(["git"]) }, () => {
  const made = [
    "runs/a/store.sqlite",
    "evaluations/a/b",
    "policies/pretrained/config.json",
    "longrun-debug-a-1.tar.gz",
  ];
  const { stdout } = spawnSync("git", ["check-ignore", ...made, "dist/longrun.tgz"], { cwd: ROOT, encoding: "utf8" });
  assert.deepEqual(stdout.trim().split("\n"), [...made, "dist/longrun.tgz"]);
});
