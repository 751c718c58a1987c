/** Tests what `longrun solve` keeps when it is stopped or killed, with real processes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scriptedServer } from "../../learner/solve/endpoint/server.fixture.ts";
import { usageOf } from "../../learner/solve/endpoint/usage.ts";
import { better, finished, home, requestsOf, samplesIn, solve, to } from "../integration/solve.fixture.ts";
import { until } from "../until.ts";

test("Ctrl-C keeps what was found and shows it; the same command goes on", async () => {
  using server = await scriptedServer(better(150));
  const args = to(server.url, "--budget", "14 executions", "--slots", "1", "--out", "stopped");
  const { child, ended } = solve(args);
  await until(() => finished("stopped") >= 4, "four solutions are graded");
  child.kill("SIGINT");
  const stopped = await ended;
  assert.equal(stopped.status, 130);
  assert.match(stopped.stdout, /^Best program: .*stopped\/best\/program\.py \(MAE \d+\)$/m);
  assert.match(stopped.stderr, /Stopped\. Go on with: the same command; finished work is kept in .*stopped\n$/);
  const before = samplesIn("stopped")
    .filter(({ grade }) => grade)
    .map(({ id, grade }) => [id, grade!.score]);
  const { status, stdout } = await solve(args).ended;
  assert.equal(status, 0);
  assert.match(stdout, /^Going on to search/m);
  const all = samplesIn("stopped");
  assert.deepEqual(
    all.slice(0, before.length).map(({ id, grade }) => [id, grade!.score]),
    before,
  );
  assert.equal(all.filter(({ grade }) => grade).length, 14);
});

test("after SIGKILL of all processes the same command loses and repeats nothing that was stored", async () => {
  using server = await scriptedServer(better(100));
  const args = to(server.url, "--budget", "20 executions", "--slots", "2", "--out", "killed");
  for (const kill of [3, 9]) {
    const { child, ended } = solve(args);
    await until(() => finished("killed") >= kill, `${kill} solutions are graded`);
    child.kill("SIGKILL");
    await ended;
  }
  const before = samplesIn("killed").filter(({ grade }) => grade);
  const { status, stderr } = await solve(args).ended;
  assert.equal(status, 0, stderr);
  const all = samplesIn("killed");
  const graded = all.filter(({ grade }) => grade);
  assert.equal(graded.length, 20);
  const known = new Map(graded.map((sample) => [sample.id, sample]));
  for (const { id, solution: text, grade } of before)
    assert.deepEqual([known.get(id)!.solution, known.get(id)!.grade], [text, grade]);
  // Each answer that was stored was asked for once; only requests that were under way at a kill have no solution.
  const { answers } = usageOf(readFileSync(join(home, "killed/requests.jsonl"), "utf8"), undefined);
  assert.ok(answers >= all.length && answers <= all.length + 2 * 8, `${answers} answers for ${all.length} solutions`);
  assert.equal(
    new Set(all.map(({ solution: text }) => text).filter((text) => /double/.test(text))).size,
    all.filter(({ solution: text }) => /double/.test(text)).length,
  );
  assert.ok(requestsOf("killed").every(({ fault }) => fault === undefined));
});
