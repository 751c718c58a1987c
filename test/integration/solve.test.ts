/** Tests `longrun solve` as a user calls it: real learner, actors and sandbox, a scripted endpoint, `longrun serve`, and the bundled policy. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type RequestLine, usageOf } from "../../learner/solve/endpoint/usage.ts";
import { completion, json, type Scripted, scriptedServer } from "../../learner/solve/endpoint/server.fixture.ts";
import { openStore } from "../../learner/store/store.ts";
import type { Sample } from "../../learner/store/types.ts";
import { until } from "../until.ts";
import { CLI, POLICY, serve } from "./serve.fixture.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-solve-"));
after(() => rmSync(home, { recursive: true, force: true }));

const task = join(home, "double");
for (const part of ["public", "private"]) mkdirSync(join(task, "prepared", part), { recursive: true });
const FILES = {
  "task.yaml": `name: double
executionTimeoutSeconds: 5
grader: { metric: MAE, idColumn: id, targetColumns: [y], direction: Lower }
`,
  "prepared/public/description.md": "Predict y from x.\n",
  "prepared/public/train.csv": "id,x,y\n1,1,2\n2,2,4\n",
  "prepared/public/test.csv": "id,x\n3,3\n4,4\n",
  "prepared/public/sample_submission.csv": "id,y\n3,0\n4,0\n",
  "prepared/private/answers.csv": "id,y\n3,60001\n4,80001\n",
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(task, name), text);

/** Returns a solution that misses each answer by `error`. Its program shows what it can see of its surroundings. */
const solution = (error: number) => `I double x.
\`\`\`python
import os
print(dict(os.environ))
open("submission.csv", "w").write("id,y\\n3,${60001 + error}\\n4,${80001 + error}\\n")
\`\`\``;
const BROKEN = "I fail.\n```python\nraise ValueError('broken on purpose')\n```";

/** Answers number i with an error of 100 - i; every fourth program fails, every seventh answer holds none. */
function better(milliseconds = 0): Scripted {
  let answers = 0;
  return (response, asked) => {
    const i = ++answers;
    const text = i % 7 === 0 ? "No program." : i % 4 === 0 ? BROKEN : solution(100 - i);
    setTimeout(() => completion(text)(response, asked), milliseconds);
  };
}

interface Started {
  child: ReturnType<typeof spawn>;
  ended: Promise<{ status: number | null; stdout: string; stderr: string }>;
  said: { stdout: string; stderr: string };
}

function solve(args: string[], env: NodeJS.ProcessEnv = {}): Started {
  const child = spawn(process.execPath, [CLI, "solve", ...args], {
    cwd: home,
    env: { ...process.env, LONGRUN_ENDPOINT_KEY: "", COLUMNS: "160", ...env },
  });
  const said = { stdout: "", stderr: "" };
  child.stdout!.on("data", (text) => (said.stdout += text));
  child.stderr!.on("data", (text) => (said.stderr += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), 120_000);
  const ended = new Promise<Awaited<Started["ended"]>>((resolve) =>
    child.once("close", (status) => {
      clearTimeout(timer);
      resolve({ status, ...said });
    }),
  );
  return { child, ended, said };
}

function samplesIn(folder: string): Sample[] {
  if (!existsSync(join(home, folder, "store.sqlite"))) return [];
  const store = openStore(join(home, folder, "store.sqlite"), { readOnly: true });
  try {
    return store.samplesFor("solve");
  } finally {
    store.close();
  }
}

/** Returns the number of graded solutions; 0 while the store is being made. */
function finished(folder: string): number {
  try {
    return samplesIn(folder).filter(({ grade }) => grade).length;
  } catch {
    return 0;
  }
}
const requestsOf = (folder: string) =>
  readFileSync(join(home, folder, "requests.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as RequestLine);

/** Returns the texts of all files of a folder. */
function everything(folder: string): string {
  const entries = readdirSync(join(home, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

const SMALL = ["--set", "learner.leaseSeconds=4", "--set", "learner.heartbeatSeconds=0.5"];
const to = (url: string, ...more: string[]) => ["--task", task, "--endpoint", url, "--model-name", "large", ...SMALL, ...more];

test("an endpoint's programs are run and graded, the best is printed, and the key is nowhere", async () => {
  using server = await scriptedServer(json(429, {}, { "retry-after": "0.1" }), better());
  const args = to(server.url, "--budget", "12 executions", "--slots", "2", "--prices", "1,10", "--out", "found");
  const { status, stdout, stderr } = await solve(args, { LONGRUN_ENDPOINT_KEY: "sk-never-written" }).ended;
  assert.equal(status, 0, stderr);
  const best = samplesIn("found").filter(({ grade }) => grade?.valid).sort((a, b) => a.grade!.score! - b.grade!.score!)[0]!;
  assert.match(stdout, new RegExp(`^Best program: ${home}/found/best/program\\.py \\(MAE ${best.grade!.score}\\)$`, "m"));
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
  const before = samplesIn("stopped").filter(({ grade }) => grade).map(({ id, grade }) => [id, grade!.score]);
  const { status, stdout } = await solve(args).ended;
  assert.equal(status, 0);
  assert.match(stdout, /^Going on to search/m);
  const all = samplesIn("stopped");
  assert.deepEqual(all.slice(0, before.length).map(({ id, grade }) => [id, grade!.score]), before);
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
  for (const { id, solution: text, grade } of before) assert.deepEqual([known.get(id)!.solution, known.get(id)!.grade], [text, grade]);
  // Each answer that was stored was asked for once; only requests that were under way at a kill have no solution.
  const { answers } = usageOf(readFileSync(join(home, "killed/requests.jsonl"), "utf8"), undefined);
  assert.ok(answers >= all.length && answers <= all.length + 2 * 8, `${answers} answers for ${all.length} solutions`);
  assert.equal(new Set(all.map(({ solution: text }) => text).filter((text) => /double/.test(text))).size, all.filter(({ solution: text }) => /double/.test(text)).length);
  assert.ok(requestsOf("killed").every(({ fault }) => fault === undefined));
});

test("an endpoint that refuses ends the search with the remedy", async () => {
  using server = await scriptedServer(json(401, { error: { message: "no such key" } }));
  const { status, stderr } = await solve(to(server.url, "--budget", "5m", "--out", "refused")).ended;
  assert.equal(status, 1);
  assert.match(stderr, /the endpoint answered 401: no such key; check LONGRUN_ENDPOINT_KEY/);
});

test("longrun serve is an endpoint, and its policy a model", async () => {
  const { url, child } = await serve([CLI, "serve"], ["--model", POLICY, "--slots", "2"]);
  const how = ["--task", task, "--budget", "6 executions", "--slots", "1", "--drafts", "2", "--set", "model.temperature=0.7"];
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
    assert.deepEqual(samples.slice(0, 2).map(({ kind }) => kind), ["scratch", "scratch"]);
    assert.ok(samples.some(({ program }) => program), `${folder}: the policy writes programs`);
  }
});
