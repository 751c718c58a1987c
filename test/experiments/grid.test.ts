import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { describePlan, duration, parseBudget, planOf } from "./budget.ts";
import type { AskedRun } from "./execute.ts";
import { gridFlags, runGrid } from "./grid.ts";
import { smallTask } from "./tasks.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-grid-"));
after(() => rmSync(folder, { recursive: true, force: true }));
// Hides output for people.
process.stdout.write = (
  (write) =>
  (text: string | Uint8Array, ...rest: never[]) =>
    String(text).startsWith("T: ") ? true : write.call(process.stdout, text, ...rest)
)(process.stdout.write) as never;

const runsOf = (seeds: number) =>
  Array.from({ length: seeds }, (_, seed) => ["quick", "slow"].map((kind) => ({ seed, kind }))).flat();
const secondsOf = ({ kind }: { kind: string }) => (kind === "slow" ? 50 : 10);

test("parseBudget reads seconds, minutes and hours, and the page shows them again", () => {
  assert.deepEqual(["90s", "30m", "1.5h"].map(parseBudget), [90, 1800, 5400]);
  for (const bad of ["30", "m", "-3m", "0s", ""]) assert.throws(() => parseBudget(bad), /--budget is .*give a time/);
  assert.deepEqual([45, 600, 3900].map(duration), ["45 s", "10 min", "1 h 5 min"]);
});

test("The grid takes as many runs as fit the budget, seed by seed, and reports missing seeds", () => {
  const runs = runsOf(3);
  const none = planOf(runs, { budgetSeconds: 5, isFinished: () => false, secondsOf });
  assert.deepEqual([none.now.length, none.wholeSeeds, none.brokenSeeds], [0, [], []]);

  const some = planOf(runs, { budgetSeconds: 80, isFinished: () => false, secondsOf });
  assert.deepEqual(some.now, runs.slice(0, 3));
  assert.deepEqual([some.nowSeconds, some.laterSeconds], [70, 110]);
  assert.deepEqual([some.wholeSeeds, some.brokenSeeds], [[0], [1]]);
  const said = describePlan(some, runs.length, 80).join("\n");
  assert.match(said, /6 runs, of which 0 are finished/);
  assert.match(said, /Fewer than asked for: 3 runs.*seeds in part: 1/);

  const rest = planOf(runs, { budgetSeconds: 200, isFinished: (run) => some.now.includes(run), secondsOf });
  assert.deepEqual(rest.now, runs.slice(3));
  assert.deepEqual(rest.wholeSeeds, [0, 1, 2]);
  assert.doesNotMatch(describePlan(rest, runs.length, 200).join("\n"), /Fewer/);
});

const flags = (extra: string[] = []) => gridFlags(["--runs", join(folder, "runs"), ...extra], { budget: "1h" });

function asked(name: string, calls: string[], guessSeconds = 1): AskedRun {
  return {
    ...{ folder: name, seed: 0, kind: name, manifest: "", set: ["a=1"], guessSeconds },
    async execute(directory) {
      calls.push(name);
      if (name.startsWith("fails")) throw new Error("as it was meant to");
      mkdirSync(join(directory, "checkpoints"));
      writeFileSync(join(directory, "made"), name);
    },
  };
}

test("A finished run is recognised by its folder, half a run starts again, and another setting is refused", async () => {
  const calls: string[] = [];
  const runs = [asked("one", calls), asked("two", calls)];
  mkdirSync(join(folder, "runs/two"), { recursive: true });
  writeFileSync(join(folder, "runs/two/torn"), "");
  const first = await runGrid("T", runs, flags());
  assert.deepEqual([calls, first.directories.size, first.missing], [["one", "two"], 2, 0]);
  assert.ok(!existsSync(join(folder, "runs/two/torn")) && existsSync(join(folder, "runs/two/made")));
  assert.ok(!existsSync(join(folder, "runs/one/checkpoints")), "weights are not kept");

  const again = await runGrid("T", [...runs, asked("three", calls)], flags());
  assert.deepEqual([calls, again.directories.size], [["one", "two", "three"], 3]);
  await assert.rejects(runGrid("T", [{ ...runs[0]!, set: ["a=2"] }], flags()), /run with other settings; remove it/);
});

test("--only starts the named runs; the other runs count as missing unless they exist", async () => {
  const calls: string[] = [];
  const runs = ["tied-0", "slow-0", "one"].map((name) => asked(name, calls));
  const some = await runGrid("T", runs, flags(["--only", "^tied"]));
  assert.deepEqual([calls, some.directories.size, some.missing], [["tied-0"], 2, 1]);
});

test("A run that resumes is stopped at the budget's end, goes on with the next call, and counts its processor time", async () => {
  const script = (directory: string) => `
    cd ${directory} 2>/dev/null || { mkdir -p ${directory}; cd ${directory}; }
    echo >> calls
    if [ -e half ]; then exit 0; fi
    trap 'touch half; exit 130' TERM
    for ((i = 0; i < 100000; i++)); do :; done
    while :; do sleep 0.05; done`;
  const run = (setting: string): AskedRun => ({
    ...{ folder: "long", seed: 0, kind: "long", manifest: "", set: [setting], guessSeconds: 100, resumes: true },
    words: (directory) => ["bash", "-c", script(directory)],
  });
  const calls = () => readFileSync(join(folder, "runs/long/calls"), "utf8").length;
  const asked = [run("a=1")];
  const stopped = await runGrid("T", asked, flags(["--budget", "2s"]));
  assert.deepEqual([stopped.directories.size, stopped.begun.size, stopped.missing, calls()], [0, 1, 1, 1]);
  const done = await runGrid("T", asked, flags());
  assert.deepEqual([done.directories.size, done.begun.size, done.missing, calls()], [1, 0, 0, 2]);
  assert.ok(done.seconds >= 2 && done.cpuSeconds.get(asked[0]!)! > 0.02, JSON.stringify([...done.cpuSeconds.values()]));

  rmSync(join(folder, "runs/long"), { recursive: true });
  await runGrid("T", asked, flags(["--budget", "2s"]));
  const other = [run("a=2")];
  await runGrid("T", other, flags(["--budget", "2s"]));
  assert.equal(calls(), 1, "a run with other settings begins anew");
});

test("Runs beyond the budget are left out, and failed runs count as missing", async () => {
  const calls: string[] = [];
  await assert.rejects(runGrid("T", [asked("long", calls, 7200)], flags()), /no run of T is finished.*raise --budget/);
  assert.equal(calls.length, 0);
  const failed = await runGrid("T", [asked("fails", calls), asked("after", calls)], flags());
  assert.deepEqual([calls, failed.missing], [["fails", "after"], 1]);
  const many = ["fails-1", "fails-2", "fails-3", "never"].map((name) => asked(name, calls));
  await assert.rejects(runGrid("T", many, flags()), /as it was meant to/);
  assert.ok(!calls.includes("never"));
});

test("Every manifest is valid, with a small task too", () => {
  const manifests = join(import.meta.dirname, "manifests");
  const task = JSON.stringify([smallTask({ name: "movie", train: 10, test: 5, fields: { rewardSplit: "Half" } })]);
  for (const file of readdirSync(manifests)) {
    const text = readFileSync(join(manifests, file), "utf8");
    assert.equal(parseTrainingRun(text, file).spec.tasks[0]!.name, "diamonds");
    const { spec } = parseTrainingRun(text, file, [`tasks=${task}`]);
    assert.deepEqual([spec.tasks[0]!.grader!.metric, spec.tasks[0]!.rewardSplit], ["R2", "Half"]);
  }
});
