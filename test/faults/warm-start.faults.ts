/** Tests the warm start of whole runs of real processes: stopped, killed, resumed and replayed, their weights are the same bit for bit. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { defaultCorpus, makeCorpus } from "../../learner/pretrain/corpus.ts";
import { exampleLine } from "../../learner/sft/examples.ts";
import { assertAccounted, RealRun, temporaryFolder } from "./real-run.ts";

const folder = temporaryFolder();
const runs: RealRun[] = [];
after(() => {
  for (const run of runs) run.stop();
  folder.remove();
});

const data = join(folder.path, "data.jsonl");
const texts = makeCorpus({ ...defaultCorpus, seed: 5, texts: 60, mistakeShare: 0 });
const examples = texts.map(({ messages, response }) => exampleLine({ prompt: messages, response }));
writeFileSync(data, examples.join(""));
const warmStart = (further = "") => `warmStart={data: {path: ${data}}, epochs: 6, learningRate: 1e-3${further}}`;
/** Generated text does not matter: short responses are soon written. */
const SHORT = ["algorithm.baseline=BatchMean", "model.maxResponseTokens=192"];

function start(name: string, options: ConstructorParameters<typeof RealRun>[1]): RealRun {
  const run = new RealRun(join(folder.path, name), options);
  runs.push(run);
  return run;
}

const stepsOf = (run: RealRun): number => {
  const lines = join(run.directory, "warm-start/sft.jsonl");
  return existsSync(lines) ? readFileSync(lines, "utf8").split('"kind":"step"').length - 1 : 0;
};
const summaryOf = (run: RealRun) => JSON.parse(readFileSync(join(run.directory, "summary.json"), "utf8")).warmStart;
const linesOf = (run: RealRun): { kl: number }[] => run.lines() as unknown as { kl: number }[];

test("A warm start that is stopped and killed goes on; a replay and an unbroken run have its weights; the KL begins at 0", async () => {
  const settings = [...SHORT, warmStart()];
  const broken = start("broken", { iterations: 2, settings });
  await broken.until("two steps", () => stepsOf(broken) >= 2);
  broken.child.kill("SIGINT");
  const stopped = await broken.ended;
  assert.equal(stopped.status, 130, stopped.output);
  const taken = stepsOf(broken);
  assert.ok(taken >= 2 && taken < 42, `${taken} steps`);
  assert.equal(broken.lines().length, 0);

  const resumed = start("broken", { iterations: 2, resume: true });
  await resumed.until("further steps", () => stepsOf(resumed) > taken + 2);
  process.kill(await resumed.until("the learner", () => resumed.find("learner/main.ts")), "SIGKILL");
  const { status, output } = await resumed.ended;
  assert.equal(status, 0, output);
  assert.match(output, /Warm start: 42 steps on 54 examples, loss \d\.\d+ to \d\.\d+; held out: loss/);
  assertAccounted(resumed, 2);
  const summary = summaryOf(resumed);
  assert.equal(summary.taken, 42);
  assert.ok(summary.isOver && summary.loss < summary.firstLoss, JSON.stringify(summary));
  assert.equal(resumed.query("SELECT count(*) AS steps FROM warm_steps")[0]!.steps, 42);
  assert.equal(linesOf(resumed)[0]!.kl, 0);
  assert.notEqual(linesOf(resumed)[1]!.kl, 0);
  assert.match(readFileSync(join(resumed.directory, "report.html"), "utf8"), /<h2>Warm start<\/h2>/);

  const replay = join(resumed.directory, "store.sqlite");
  const replayed = start("replayed", { iterations: 2, settings, replay });
  assert.equal((await replayed.ended).status, 0, replayed.output);
  assert.equal(replayed.newestDigest(), resumed.newestDigest());

  const initial = start("initial", { iterations: 2, settings: [...SHORT, warmStart(", reference: Initial")], replay });
  assert.equal((await initial.ended).status, 0, initial.output);
  assert.ok(Math.abs(linesOf(initial)[0]!.kl) > 0.01, `${linesOf(initial)[0]!.kl}`);
});

test("A warm start of an adapter makes the reference: the KL begins at 0, and a replay has the same weights", async () => {
  const settings = [...SHORT, warmStart(), "model.adaptation={type: LoRA, rank: 4}"];
  const run = start("lora", { iterations: 2, settings });
  await run.reached(1);
  // the reference comes from the run folder again
  run.child.kill("SIGINT");
  if ((await run.ended).status === 130) {
    const goesOn = start("lora", { iterations: 2, resume: true });
    assert.equal((await goesOn.ended).status, 0, goesOn.output);
  }
  assert.equal(linesOf(run)[0]!.kl, 0);
  const replay = join(run.directory, "store.sqlite");
  const replayed = start("lora-replayed", { iterations: 2, settings, replay });
  assert.equal((await replayed.ended).status, 0, replayed.output);
  assert.equal(replayed.newestDigest(), run.newestDigest());
  assert.deepEqual(
    linesOf(replayed).map(({ kl }) => kl),
    linesOf(run).map(({ kl }) => kl),
  );
});

test("Data that cannot be used is refused before the run begins, by line and field", async () => {
  const bad = join(folder.path, "bad.jsonl");
  writeFileSync(bad, `${examples[0]}{"prompt": "a"}\n`);
  const settings = [...SHORT, `warmStart={data: {path: ${bad}}}`];
  const { status, output } = await start("bad", { iterations: 2, settings }).ended;
  assert.equal(status, 2, output);
  assert.match(output, /spec\.warmStart\.data: .*bad\.jsonl, line 2: completion is missing; give messages/);
});
