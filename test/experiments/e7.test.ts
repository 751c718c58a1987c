/** A rehearsal of E7 with the quickstart's policy: a warm start on a few programs, and one iteration of three arms. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse } from "yaml";
import { policyFolder } from "../../crds/policy.ts";
import { parseTrainingRun, type TrainingRun, type TrainingRunSpec } from "../../crds/trainingrun.ts";
import { e7At } from "./e7.ts";
import { ARMS } from "./e7-arms.ts";

const runs = mkdtempSync(join(tmpdir(), "longrun-e7-"));
after(() => rmSync(runs, { recursive: true }));
const SMALL = {
  model: policyFolder("quickstart", "", ""),
  programs: 8,
  sft: ["--epochs", "1", "--batch-size", "4", "--held-out", "0"],
  set: [
    ...["algorithm.batchSize=4", "algorithm.miniBatchSize=4", "algorithm.microBatchSize=4", "evaluation.samples=4"],
    ...["stopping.iterations=1", "model.maxPromptTokens=256", "learner.threads=1"],
  ],
  guessSeconds: { warm: 1, run: 2 },
};
const flags = (...more: string[]) => ["--runs", runs, "--seeds", "1", ...more];
const RUN = ["RL", "no-warm-start", "debug-prompts"];

test("E7 warm-starts on programs for other tasks, trains the arms, repeats no finished run, and reports", async () => {
  const first = await e7At(SMALL, flags("--only", `E7/(warm-start|${RUN.join("|")})-0`));
  const manifest = (folder: string) =>
    parse(readFileSync(join(runs, "E7", `${folder}-0`, "trainingrun.yaml"), "utf8")) as TrainingRun;
  const programs = readFileSync(join(runs, "E7/warm-start-0/programs.jsonl"), "utf8").trim().split("\n");
  assert.equal(programs.length, 8);
  assert.doesNotMatch(programs.join(), /diamond|carat/);
  const warm = join(runs, "E7/warm-start-0/model");
  assert.ok(existsSync(join(warm, "model.safetensors")));
  assert.deepEqual(
    RUN.map((folder) => manifest(folder).spec.model.policy),
    [warm, SMALL.model, warm],
  );
  assert.equal(manifest("debug-prompts").spec.prompts.debugProbability, 0.5);
  for (const arm of ["RL", "no warm start", "debug prompts"])
    assert.match(
      first.page,
      new RegExp(`^\\| diamonds \\| ${arm} \\| 1 \\| \\d\\.\\d\\d \\(1 seed\\) .* 0\\.0\\d \\(1 seed\\) \\|$`, "m"),
    );
  assert.match(first.page, /^\*\*Partial: the comparisons rest on 1 seed, and 11 of 19 have no pair/m);
  const none = await e7At(SMALL, flags("--budget", "0"));
  assert.equal(none.page, first.page);
});

test("Every arm of E7 is a valid run", () => {
  const file = join(import.meta.dirname, "manifests/E7.yaml");
  const specs = Object.values(ARMS).map((set) => parseTrainingRun(readFileSync(file, "utf8"), file, [...set]).spec);
  const of = <T>(value: (spec: TrainingRunSpec) => T) => new Set(specs.map(value)).size;
  assert.equal(
    of((spec) => spec.algorithm.learningRate),
    2,
  );
  assert.equal(
    of((spec) => spec.algorithm.markerReward),
    2,
  );
  assert.equal(
    of((spec) => spec.prompts.improveProbability),
    2,
  );
  assert.equal(
    of((spec) => spec.prompts.debugProbability),
    2,
  );
});
