/** Tests `longrun solve` as a user calls it: real learner, actors and sandbox, a scripted endpoint, `longrun serve`, and the bundled policy. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { json, scriptedServer } from "../../learner/solve/endpoint/server.fixture.ts";
import { CLI, POLICY, serve } from "./serve.fixture.ts";
import { better, everything, finished, home, samplesIn, solve, task, to } from "./solve.fixture.ts";

test("an endpoint's programs are run and graded, the best is printed, and the key is nowhere", async () => {
  using server = await scriptedServer(json(429, {}, { "retry-after": "0.1" }), better());
  const args = to(server.url, "--budget", "12 executions", "--slots", "2", "--prices", "1,10", "--out", "found");
  const { status, stdout, stderr } = await solve(args, { LONGRUN_ENDPOINT_KEY: "sk-never-written" }).ended;
  assert.equal(status, 0, stderr);
  const best = samplesIn("found")
    .filter(({ grade }) => grade?.valid)
    .sort((a, b) => a.grade!.score! - b.grade!.score!)[0]!;
  assert.match(
    stdout,
    new RegExp(`^Best program: ${home}/found/best/program\\.py \\(MAE ${best.grade!.score}\\)$`, "m"),
  );
  assert.match(stdout, /^Solutions: 12 \(\d+ valid, \d+ failed\) in \d+/m);
  assert.match(stdout, /^Endpoint: 12 answers, 1200 \+ 240 tokens, 0\.0036 USD, 1 failed requests$/m);
  assert.equal(readFileSync(join(home, "found/best/program.py"), "utf8"), best.program);
  assert.equal(finished("found"), 12);
  assert.ok(server.asked.every(({ headers }) => headers.authorization === "Bearer sk-never-written"));
  assert.match(best.result!.terminalOutput, /PATH/, "the program prints its environment");
  assert.doesNotMatch(everything("found") + stdout + stderr, /sk-never-written/);
  // What leaves the machine has the public files' content, and no answer.
  const sent = JSON.stringify(server.asked.map(({ body }) => body));
  assert.match(sent, /Predict y from x\./);
  const drafts = server.asked.filter(({ body }) => !/Previous solution/.test(JSON.stringify(body)));
  assert.doesNotMatch(JSON.stringify(drafts), /60001|80001/);
  assert.doesNotMatch(sent, new RegExp(`${home}|answers\\.csv`));
  const page = readFileSync(join(home, "found/report.html"), "utf8");
  assert.match(page, /The tree of solutions/);
  assert.match(page, new RegExp(`${best.id} (draft|improve|debug)`));

  const again = await solve(args).ended;
  assert.match(again.stdout, /^Searched before: .*found; to search on, raise --budget$/m);
  assert.equal(again.status, 0);
  const other = await solve([...args, "--search", "tree"]).ended;
  assert.equal(other.status, 2);
  assert.match(other.stderr, /has a search whose .*search.* choose another folder with --out/);
});

test("an endpoint that refuses ends the search with the remedy", async () => {
  using server = await scriptedServer(json(401, { error: { message: "no such key" } }));
  const { status, stderr } = await solve(to(server.url, "--budget", "5m", "--out", "refused")).ended;
  assert.equal(status, 1);
  assert.match(stderr, /the endpoint answered 401: no such key; check LONGRUN_ENDPOINT_KEY/);
});

test("longrun serve is an endpoint, and its policy a model", async () => {
  const { url, child } = await serve([CLI, "serve"], ["--model", POLICY, "--slots", "2"]);
  const how = [
    "--task",
    task,
    "--budget",
    "6 executions",
    "--slots",
    "1",
    "--drafts",
    "2",
    "--set",
    "model.temperature=0.7",
  ];
  const short = ["--set", "prompts.style=Short", "--set", "model.maxResponseTokens=200"];
  const asked = solve([...how, ...short, "--endpoint", url, "--model-name", "policy", "--out", "served"]);
  const { status, stdout, stderr } = await asked.ended;
  child.kill();
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^Solutions: 6 /m);
  assert.match(stdout, /^Endpoint: 6 answers, [1-9]\d+ \+ [1-9]\d+ tokens$/m);
  const own = await solve([...how, "--model", "quickstart", "--out", "owned"]).ended;
  assert.equal(own.status, 0, own.stderr);
  assert.match(own.stdout, /^Solutions: 6 /m);
  assert.doesNotMatch(own.stdout, /^Endpoint/m);
  for (const folder of ["served", "owned"]) {
    const samples = samplesIn(folder);
    assert.deepEqual(
      samples.slice(0, 2).map(({ kind }) => kind),
      ["scratch", "scratch"],
    );
    assert.ok(
      samples.some(({ program }) => program),
      `${folder}: the policy writes programs`,
    );
  }
});
