import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type MadeUpRun, writeMadeUpRun } from "./made-up-run.fixture.ts";
import { writeReport } from "./write.ts";
import { ReportWriter } from "./writer.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

async function folder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "longrun-report-"));
}

const runs: [name: string, run: MadeUpRun, has: RegExp[], hasNot: RegExp[]][] = [
  [
    "a finished run",
    { iterations: 12, finished: 12, state: "succeeded" },
    [
      ...[
        /done, 12 iterations \(stopping\.iterations\)/,
        /best so far/,
        /Terminal output/,
        /the stronger the colour, the more/,
      ],
      ...[
        /<h2>Evaluation<\/h2>\s*<p>Protocol paper: 64 programs from scratch and 64 improvements/,
        /after 12 iterations/,
      ],
      ...[/<summary>Best program after training, improving another<\/summary>/, /both kinds of prompt/],
      ...[/Responses cut at maxResponseTokens/, /<h3>What the engine does<\/h3>/, />idle: too few actors</],
      /<h2>Time<\/h2>\s*<p>The engine was busy 6\d % of the time: .* because executions waited for an actor: raise actors/,
    ],
    [/Nothing measured yet/, /No valid program yet/, /Before and after/],
  ],
  [
    "a finished run of one iteration",
    { iterations: 1, finished: 1, state: "succeeded" },
    [/done, 1 iteration \(stopping\.iterations\)</],
    [],
  ],
  [
    "a run that is not finished",
    { iterations: 12, finished: 4, state: "running" },
    [/running, iteration 5 of 12 \(stopping\.iterations\)/, /newest iteration 2000-01-01/],
    [/done,/, /flagged/i, /clamped/i],
  ],
  [
    "a run that is evaluated every two iterations",
    { iterations: 12, finished: 5, state: "running", evaluatedEvery: 2 },
    [/<h3>While training<\/h3>/, />after 2 iterations</, />after 4 iterations</, />mean MAE</],
    [/after 5 iterations/, /after 1 iteration/],
  ],
  [
    "a run with a private part",
    {
      ...{ iterations: 12, finished: 12, state: "succeeded" },
      privateFacts: {
        ...{ direction: "Lower", privateScore: 291.5, gap: -6.25, medianGap: 2.5, programs: 312 },
        ...{ publicRows: 2500, privateRows: 2000 },
        rowIntervals: { score: [271, 299], privateScore: [280.5, 303], gap: [-20, 7] },
      },
    },
    [
      /<th scope="row">private score<\/th><td>291\.5<\/td><td>280\.5 to 303<\/td><td>2,000<\/td>/,
      /<th scope="row">gap<\/th><td>−6\.250<\/td><td>−20\.00 to \+7\.000<\/td>/,
      /its median over the 312 valid programs until then is \+2\.500, .* flattered this one by 8\.750\. Intervals: bootstrap/,
    ],
    [/no private score/, /undefined|NaN/],
  ],
  [
    "a best program whose private score is undefined",
    {
      ...{ iterations: 2, finished: 2, state: "succeeded" },
      privateFacts: {
        ...{ direction: "Lower", noPrivateScore: "the score is no number: <all alike>", programs: 0 },
        rowIntervals: { score: null, privateScore: null, gap: null },
      },
    },
    [/It has no private score: the score is no number: &#60;all alike&#62;\./],
    [/public score/],
  ],
  [
    "a run before its first iteration",
    { iterations: 12, finished: 0, state: "running" },
    [/running, iteration 1 of 12/, /Plots appear when/, /No iteration has ended yet/],
    [/<svg/, /<h2>Evaluation/],
  ],
  [
    "no valid program",
    {
      ...{ iterations: 3, finished: 1, state: "failed", validAtStart: 0 },
      commonErrors: [{ error: "KeyError: '<b>'", samples: 7, example: { id: "s7", program: "wanted = 1" } }],
    },
    [
      /The commonest errors/,
      /7 programs: KeyError: &#39;&#60;b&#62;/,
      /for example s7/,
      /wanted/,
      /failed in iteration 2 of 3/,
      /No valid program yet, so there is no score/,
      /see logs\/actor-0\.log/,
    ],
    [/program\.py/],
  ],
  [
    "a bundled task, whose grader is not in the manifest",
    { iterations: 3, finished: 3, state: "succeeded", bundled: true },
    [/Task diamonds \(MAE, lower is better\)/, />Lower is better\.</],
    [/higher is better/i],
  ],
  [
    "submissions that guards flagged",
    { iterations: 3, finished: 3, state: "succeeded", guards: ["constant", "perfect"] },
    [
      /Guards flagged \d+ of \d+ valid submissions .*: one prediction throughout \d+, perfect score \d+\. No reward/,
      /Flagged submissions/,
      /<th scope="col">flagged<\/th>/,
      /flagged: one prediction throughout, perfect score/,
    ],
    [/copy of the sample/],
  ],
  [
    "every valid reward at the floor",
    { iterations: 3, finished: 3, state: "succeeded", clamped: true },
    [
      /valid rewards were raised to the grader(&#39;|')s rewardFloor\. In 3 iterations/,
      /<th scope="col">clamped<\/th>/,
    ],
    [/<th scope="col">flagged<\/th>/],
  ],
  [
    "lines of an earlier version, which lack the engine's time",
    { iterations: 3, finished: 3, state: "succeeded", engine: "unmeasured" },
    [/<h2>Time<\/h2>\s*<div class="charts">/, /Where the time goes/, /learner idle/],
    [/What the engine does|The engine was busy/],
  ],
  [
    "slow work is lost",
    { iterations: 3, finished: 3, state: "succeeded", weighting: "Off", collection: "Discard", losesSlow: true },
    [/shorter. Slow work is being lost/],
    [/they agree/],
  ],
  [
    "several tasks, many iterations",
    { iterations: 100, finished: 60, state: "stopped", tasks: ["diamonds", "wage"] },
    [
      /stopped after 60 of 100 iterations \(stopping\.iterations\)/,
      /Score of diamonds by time/,
      /Score of wage by iteration/,
      /iteration 1 → 60/,
    ],
    [/Mean score<\/dt>/],
  ],
];

describe("report", () => {
  let directory: string;
  before(async () => {
    directory = await folder();
  });
  after(() => rm(directory, { recursive: true, force: true }));

  for (const [name, run, has, hasNot] of runs) {
    test(`the report of a run: ${name}`, async () => {
      await rm(directory, { recursive: true, force: true });
      await writeMadeUpRun(directory, run);
      const page = await readFile(await writeReport(directory), "utf8");
      for (const pattern of has) assert.match(page, pattern);
      for (const pattern of hasNot) assert.doesNotMatch(page, pattern);
      assertSelfContained(page);
      assert.deepEqual(
        (await readdir(directory)).filter((file) => file.endsWith(".new")),
        [],
      );
    });
  }

  test("a report needs neither summary.json nor evaluations nor best/", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 5, finished: 3, state: "running" });
    await rm(join(directory, "summary.json"));
    await rm(join(directory, "best"), { recursive: true });
    await appendFile(join(directory, "metrics.jsonl"), '{"iteration":4,"torn');
    const page = await readFile(await writeReport(directory), "utf8");
    assert.match(page, /running, iteration 4 of 5/);
    assert.match(page, /<th scope="col">iteration 1<\/th><th scope="col">iteration 3<\/th>/);
    assertSelfContained(page);
  });

  test("the evaluation that was made of a run stands in for the run's own", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 5, finished: 5, state: "succeeded" });
    await writeMadeUpRun(join(directory, "evaluation"), { iterations: 5, finished: 3, state: "stopped", seed: 7 });
    const page = await readFile(await writeReport(directory), "utf8");
    assert.match(page, /It is not finished\./);
    assert.doesNotMatch(page, /after \d+ iterations/);
    assert.match(page, /Best program before training, from scratch/);
    assertSelfContained(page);
  });

  test("the report has the evaluation and the best program of each task, or says that there is none", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 5, finished: 5, state: "succeeded", tasks: ["diamonds", "wage"] });
    const one = join(directory, "one");
    await writeMadeUpRun(one, { iterations: 5, finished: 5, state: "succeeded" });
    for (const folder of ["best", "programs"]) {
      await mkdir(join(directory, folder), { recursive: true });
      await rename(join(one, folder), join(directory, folder, "diamonds"));
    }
    const path = join(directory, "summary.json");
    const summary = JSON.parse(await readFile(path, "utf8"));
    const { evaluation } = summary;
    const wage = { ...evaluation, settings: { ...evaluation.settings, task: "wage" } };
    await writeFile(path, JSON.stringify({ ...summary, evaluation: { tasks: { diamonds: evaluation, wage } } }));
    const page = await readFile(await writeReport(directory), "utf8");
    const [evaluated, best] = [page.split("<h2>Evaluation</h2>")[1]!, page.split("<h2>Best programs</h2>")[1]!];
    assert.match(
      evaluated,
      /^<h3>diamonds<\/h3>[\s\S]*Best program before training, from scratch[\s\S]*<h3>wage<\/h3>/,
    );
    assert.match(
      best,
      /^<h3>diamonds<\/h3>[\s\S]*program\.py[\s\S]*<h3>wage<\/h3><p class="empty">No valid program yet/,
    );
    assertSelfContained(page);
  });

  test("an evaluation's folder has a page without a training in it", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 5, finished: 5, state: "succeeded" });
    await writeFile(join(directory, "policies.json"), "{}");
    await rm(join(directory, "metrics.jsonl"));
    const page = await readFile(await writeReport(directory), "utf8");
    assert.match(page, /<span class="state succeeded">evaluated<\/span>/);
    assert.match(page, /<h2>Evaluation<\/h2>/);
    assert.doesNotMatch(page, /Every iteration|Plots appear|Programs executed/);
    assertSelfContained(page);
  });

  test("a program's output stays text in the report", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 2, finished: 2, state: "succeeded" });
    await writeFile(join(directory, "best", "output.txt"), "</pre><img src=x onerror=alert(1)>\u001b[31m");
    await writeFile(join(directory, "best", "program.py"), 'x = "</pre><script>alert(1)</script>"\n');
    const page = await readFile(await writeReport(directory), "utf8");
    assert.doesNotMatch(page, /<img|onerror=alert\(1\)>|<script/);
    assert.match(page, /&#60;img src=x onerror=alert\(1\)&#62;/);
  });

  test("the report does not show the address of a webhook", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 2, finished: 0, state: "running" });
    await appendFile(join(directory, "trainingrun.yaml"), "  notifications: { webhook: { url: 'https://h/T0P' } }\n");
    const page = await readFile(await writeReport(directory), "utf8");
    assert.doesNotMatch(page, /T0P|webhook/);
    assert.match(page, /batchSize|iterations/);
  });

  const refusals: [name: string, arguments_: () => string[], exitCode: number, message: RegExp][] = [
    ["no folder", () => [], 2, /^error: missing required argument 'RUN'\nlongrun help report says more\n$/],
    ["two folders", () => [directory, directory], 2, /^error: too many arguments: expected 1, got 2\n/],
    ["a folder that is not there", () => [join(directory, "none")], 2, /none does not exist; name the folder of a run/],
    ["a folder of something else", () => [tmpdir()], 2, /has no trainingrun\.yaml; name the folder of a run/],
    ["an unknown option", () => ["--fast", directory], 2, /--fast/],
  ];
  for (const [name, arguments_, exitCode, message] of refusals) {
    test(`the report's command line: ${name}`, () => {
      const { status, stderr, stdout } = spawnSync(process.execPath, [MAIN, ...arguments_()], { encoding: "utf8" });
      assert.equal(stdout, "");
      assert.match(stderr, message);
      assert.ok(stderr.trim().split("\n").length <= 2, stderr);
      assert.equal(status, exitCode);
    });
  }

  test("the report's command refuses a damaged manifest or summary in one line", async () => {
    await writeMadeUpRun(directory, { iterations: 2, finished: 1, state: "running" });
    await writeFile(join(directory, "summary.json"), "{");
    const damaged = () => spawnSync(process.execPath, [MAIN, directory], { encoding: "utf8" });
    assert.match(damaged().stderr, /summary\.json cannot be read: .*\n$/);
    await writeFile(join(directory, "trainingrun.yaml"), "spec: [");
    const { status, stderr } = damaged();
    assert.match(stderr, /trainingrun\.yaml cannot be read: .*\n$/);
    assert.equal(status, 2);
  });

  test("the writer joins many requests into few reports and leaves the main thread free", async () => {
    await rm(directory, { recursive: true, force: true });
    await writeMadeUpRun(directory, { iterations: 12, finished: 12, state: "succeeded" });
    const errors: string[] = [];
    const writer = new ReportWriter({ runDirectory: directory, onError: (error) => errors.push(error) });
    // CPU time, because on a busy machine a thread stands still without having worked.
    const before = { thread: process.threadCpuUsage(), process: process.cpuUsage() };
    for (let request = 0; request < 20; request++) writer.request();
    await writer.close();
    const milliseconds = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000;
    const here = milliseconds(process.threadCpuUsage(before.thread));
    const everywhere = milliseconds(process.cpuUsage(before.process));
    assert.deepEqual(errors, []);
    assertSelfContained(await readFile(join(directory, "report.html"), "utf8"));
    assert.ok(here < 100, `the main thread worked for ${here} ms`);
    assert.ok(everywhere < 6000, `one report was asked for, ${everywhere} ms were spent`);
  });

  test("the writer logs a report that cannot be written and tries the next one", async () => {
    const gone = join(directory, "gone");
    const errors: string[] = [];
    const writer = new ReportWriter({
      runDirectory: gone,
      onError: (error) => errors.push(error),
    });
    writer.request();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await writer.close();
    assert.ok(errors.length >= 1 && errors.every((error) => /gone does not exist/.test(error)), errors.join("; "));
  });
});

function assertSelfContained(page: string): void {
  assert.doesNotMatch(page, /<script|<link|<img|<iframe|@import|\bon\w+="/i);
  assert.doesNotMatch(page.replaceAll("http://www.w3.org/", ""), /https?:\/\//);
  assert.doesNotMatch(page, /NaN|undefined|Infinity|\[object/);
  for (const svg of page.match(/<svg[\s\S]*?<\/svg>/g) ?? [])
    assert.match(svg, /^<svg viewBox="[\d .]+" role="img" aria-label="[^"]+">/);
}
