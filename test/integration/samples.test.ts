/** `longrun samples` on a run folder: lists, one whole sample, and output of programs that is made harmless to a terminal. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { policyFolder } from "../../crds/policy.ts";
import { readTokenizer } from "../../learner/engine/model/folder.ts";
import { newResult, newSample, scratchFolder } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";

const CLI = join(import.meta.dirname, "../../controller/cli.ts");
const home = scratchFolder();
after(() => rmSync(home, { recursive: true, force: true }));
mkdirSync(join(home, "run"));
const store = openStore(join(home, "run/store.sqlite"));
await store.beginLineage(async () => false);
const lineage = store.lineage;
store.addSamples([newSample("good", { lineage }), newSample("bad", { lineage, kind: "improve", previous: "good" })]);
store.addSamples([newSample("none", { lineage, state: "notExecuted", program: undefined, solution: "I cannot." })]);
store.addSamples([newSample("queued", { lineage })]);
const [good, bad] = store.leases.takeAll(["actor", "actor"]);
store.leases.accept("actor", good!, newResult());
const failed = { outcome: "failed", exitStatus: 1, terminalOutput: "\u001b[2JKeyError: 'x'\n" } as const;
store.leases.accept("actor", bad!, newResult(failed));
const grade = { valid: true, score: 30.5, reward: -9, reason: "valid", guards: ["constant"], clamped: true };
store.setGrade("good", grade, { score: 987654.5, reason: "valid" });
store.setGrade("bad", { valid: false, reward: -9.9, reason: "failed" });
store.setGrade("none", { valid: false, reward: -10, reason: "noCodeBlock" });
store.commitIteration({ iteration: 1, sampleIds: ["good"], metrics: {} });
store.close();

const MANIFEST = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: {name: exported}
spec:
  model: {policy: quickstart}
  tasks: [{name: diamonds}]
`;

const longrun = (...args: string[]) =>
  spawnSync(process.execPath, [CLI, "samples", ...args], { encoding: "utf8", cwd: home, timeout: 60_000 });

test("longrun samples lists all samples in the order of dispatch", () => {
  const { stdout, status } = longrun("run");
  const rows = stdout.split("\n");
  assert.match(rows[0]!, /^id +trained in +task +prompt +score +reward +duration +result$/);
  assert.match(
    rows[1]!,
    /^good +1 +diamonds +scratch +30\.500 +-9\.0000 +1\.50 s +valid, flagged: constant, at rewardFloor$/,
  );
  assert.match(rows[2]!, /^bad +- +diamonds +improve +- +-9\.9000 +1\.50 s +␛\[2JKeyError: 'x'$/);
  assert.match(rows[3]!, /^none +- +diamonds +scratch +- +-10\.000 +- +noCodeBlock$/);
  assert.match(rows[4]!, /^queued +- +diamonds +scratch +- +- +- +waits for an actor$/);
  assert.match(stdout, /longrun samples run --show queued\n$/);
  assert.equal(status, 0);
});

test("--failed --json lists the failed samples for programs", () => {
  const lines = longrun("run", "--failed", "--json").stdout.trimEnd().split("\n");
  const found = lines.map((line) => JSON.parse(line));
  assert.deepEqual(
    found.map(({ id, error }) => [id, error]),
    [
      ["bad", "\u001b[2JKeyError: 'x'"],
      ["none", "noCodeBlock"],
    ],
  );
});

test("--show prints a sample's program and output, or its response where there is no program", () => {
  const { stdout } = longrun("run", "--show", "bad");
  assert.match(stdout, /^id +bad$/m);
  assert.match(stdout, /^previous +good$/m);
  assert.match(stdout, /\nprogram\nprint\(1\)\n\nterminal output\n␛\[2JKeyError: 'x'\n$/);
  assert.match(longrun("run", "--show", "good").stdout, /^privateScore +987654\.5$/m);
  assert.doesNotMatch(longrun("run").stdout + longrun("run", "--json").stdout, /987654/, "lists have public scores");
  assert.match(longrun("run", "--show", "none").stdout, /\nsolution\nI cannot\.\n$/);
  assert.equal(JSON.parse(longrun("run", "--show", "bad", "--json").stdout).terminalOutput, "\u001b[2JKeyError: 'x'\n");
});

test("--export writes the valid samples that no guard flagged, and says how many are left out", () => {
  const run = join(home, "exported");
  mkdirSync(run);
  writeFileSync(join(run, "trainingrun.yaml"), MANIFEST);
  const tokenizer = readTokenizer(policyFolder("quickstart", "", ""));
  const messages = [{ role: "user", content: "Predict the price." }] as const;
  const promptTokens = tokenizer.encodeChat(messages);
  const exported = openStore(join(run, "store.sqlite"));
  for (const [id, reward] of Object.entries({ first: 0.25, second: 0.75, third: 0.5 })) {
    exported.addSamples([newSample(id, { promptTokens, state: "notExecuted", program: `print("${id}")\n` })]);
    const grade = { valid: true, score: 30, reward, reason: "valid" };
    exported.setGrade(id, grade, { score: 987654 - reward, reason: "valid" });
  }
  exported.close();
  const { stdout, status } = longrun("exported", "--export", "best.jsonl", "--best", "2");
  const left = "0 not valid, 0 flagged, 0 the same program as a better one, 1 not the best";
  assert.equal(stdout, `best.jsonl: 2 samples; left out: ${left}\n`);
  assert.equal(status, 0);
  const lines = readFileSync(join(home, "best.jsonl"), "utf8").trimEnd().split("\n");
  const answer = { role: "assistant", content: newSample("any").solution };
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [
      { messages: [...messages, answer], task: "diamonds", kind: "scratch", sample: "second", score: 30, reward: 0.75 },
      { messages: [...messages, answer], task: "diamonds", kind: "scratch", sample: "third", score: 30, reward: 0.5 },
    ],
  );
  assert.equal(longrun("run", "--best", "2").stderr, "--best is of --export; give that too, or leave it out\n");
});

test("An unknown sample or run folder is refused", () => {
  const none = longrun("run", "--show", "other");
  assert.deepEqual(
    [none.status, none.stderr],
    [2, "--show other: there is no such sample in run; longrun samples run lists them\n"],
  );
  const folder = longrun(".");
  assert.deepEqual([folder.status, folder.stderr], [2, ".: this is no run folder: it has no store.sqlite\n"]);
  const missing = longrun("runs/nope");
  assert.deepEqual([missing.status, missing.stderr], [2, "runs/nope: there is no such run folder\n"]);
});
