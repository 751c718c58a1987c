import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsError } from "./errors.ts";
import { serveMetrics } from "./http.ts";
import { type IterationInput, iterationMetrics } from "./iteration.ts";
import { LearnerMetrics } from "./prometheus.ts";

const tokens = { promptTokens: { length: 10 }, responseTokens: { length: 20 } };

function line(fields: Partial<IterationInput> = {}) {
  return iterationMetrics({
    iteration: 1,
    lineage: 1,
    tasks: [{ name: "diamonds", direction: "Lower" }],
    markerNames: ["loaded data"],
    trained: [
      {
        task: "diamonds",
        kind: "scratch",
        outcome: "completed",
        valid: true,
        score: 300,
        durationSeconds: 2,
        ...tokens,
      },
      { task: "diamonds", kind: "improve", outcome: "failed", valid: false, durationSeconds: 1, ...tokens },
    ],
    launchedSeconds: [1, 2],
    durationWeights: [1, 1],
    kl: 0.25,
    klCoefficient: 0.001,
    entropy: 0.5,
    importanceMaxDeviation: null,
    importanceDeviates: false,
    importanceMean: 1,
    learningRate: 3e-4,
    criticLearningRate: null,
    importanceCappedShare: 0,
    policySteps: [],
    criticSteps: [],
    tokensGenerated: 40,
    secondsByPhase: { generate: 2, execute: 6 },
    seconds: 10,
    elapsedSeconds: 10,
    actors: { busySeconds: 3, aliveSeconds: 4 },
    executions: { queued: 1, running: 1, lost: 0, retried: 0 },
    improvePrompts: { shown: 3, noPrevious: 0, tooLong: 2 },
    debugPrompts: { shown: 0, noFailure: 0, tooLong: 0 },
    verificationFailures: 0,
    instrumenterFaults: [],
    staleDropped: 0,
    staleWaited: 0,
    zeroSpreadShare: null,
    noSignal: false,
    groupDropped: 0,
    zeroSignalDropped: 0,
    wallTime: new Date(0),
    ...fields,
  });
}

/** `longrun_x{label="value"}` -> number. */
async function scraped(metrics: LearnerMetrics): Promise<Map<string, number>> {
  const rows = (await metrics.registry.metrics()).split("\n").filter((row) => row.startsWith("longrun_"));
  return new Map(rows.map((row) => [row.slice(0, row.lastIndexOf(" ")), Number(row.slice(row.lastIndexOf(" ") + 1))]));
}

test("gauges show the newest line, and counters add all lines up", async () => {
  const metrics = new LearnerMetrics();
  metrics.observeIteration(line({ instrumenterFaults: ["changed", "changed"] }));
  metrics.observeIteration(
    line({ iteration: 2, instrumenterFaults: ["changed"], kl: 0.5, trained: [], durationWeights: [] }),
  );
  const values = await scraped(metrics);
  const expected: [string, number | undefined][] = [
    ["longrun_iteration", 2],
    ["longrun_policy_kl", 0.5],
    ["longrun_actor_busy_ratio", 0.75],
    ["longrun_duration_launched_mean_seconds", 1.5],
    ["longrun_effective_sample_size", undefined],
    ['longrun_samples_total{outcome="completed"}', 1],
    ['longrun_samples_total{outcome="failed"}', 1],
    ['longrun_prompts_total{kind="improve"}', 1],
    ['longrun_phase_seconds_total{phase="execute"}', 12],
    ["longrun_tokens_generated_total", 80],
    ['longrun_improve_prompts_total{result="tooLong"}', 4],
    ['longrun_improve_prompts_total{result="noPrevious"}', 0],
    ['longrun_instrumenter_faults_total{reason="changed"}', 3],
    ['longrun_score_best{task="diamonds"}', undefined],
  ];
  for (const [name, value] of expected) assert.equal(values.get(name), value, name);
});

test("the engine's seconds add up, and lines of an earlier version have none", async () => {
  const metrics = new LearnerMetrics();
  const engineSeconds = {
    generating: 4,
    updating: 3,
    idleActors: 2,
    idlePrograms: 0,
    idleStaleness: 0.5,
    idleOther: 0.5,
  };
  const check = async (newest: number | undefined, counted: number) => {
    const values = await scraped(metrics);
    for (const [use, seconds] of Object.entries(engineSeconds)) {
      assert.equal(values.get(`longrun_learner_engine_seconds_total{use="${use}"}`), counted * seconds, use);
      const gauge = values.get(`longrun_iteration_engine_seconds{use="${use}"}`);
      assert.equal(gauge, newest === undefined ? undefined : newest * seconds, use);
    }
  };
  await check(undefined, 0);
  metrics.observeIteration(line({ engineSeconds }));
  await check(1, 1);
  metrics.observeIteration(line({ iteration: 2 }));
  await check(undefined, 1);
  metrics.observeIteration(line({ iteration: 3, engineSeconds }));
  await check(1, 2);
});

test("gauges are absent and counters are 0 before the first line", async () => {
  const values = await scraped(new LearnerMetrics());
  assert.equal(values.get("longrun_iteration"), 0);
  assert.equal(values.get("longrun_valid_ratio"), undefined);
  assert.equal(values.get('longrun_samples_total{outcome="lost"}'), 0);
  assert.equal(values.get('longrun_learner_engine_seconds_total{use="idleStaleness"}'), 0);
  assert.equal(values.get('longrun_execution_events_total{event="retried"}'), 0);
});

test("a learner that resumes shows the newest line and counts from there", async () => {
  const metrics = new LearnerMetrics();
  metrics.show(line({ iteration: 7 }));
  metrics.continueFrom({ queued: 0, running: 0, completed: 40, lost: 2, retried: 3, disrupted: 9 });
  metrics.observeExecutions({ queued: 0, running: 0, completed: 41, lost: 2, retried: 3, disrupted: 9 });
  const values = await scraped(metrics);
  const expected: [string, number][] = [
    ["longrun_iteration", 7],
    ['longrun_outcome_ratio{outcome="completed"}', 0.5],
    ['longrun_outcome_ratio{outcome="timedOut"}', 0],
    ['longrun_samples_total{outcome="completed"}', 0],
    ['longrun_execution_events_total{event="completed"}', 1],
    ['longrun_execution_events_total{event="lost"}', 0],
  ];
  for (const [name, value] of expected) assert.equal(values.get(name), value, name);
});

test("counters of executions grow by the new executions", async () => {
  const metrics = new LearnerMetrics();
  metrics.observeExecutions({ queued: 5, running: 2, completed: 3, lost: 0, retried: 1, disrupted: 0 });
  metrics.observeExecutions({ queued: 0, running: 1, completed: 7, lost: 1, retried: 1, disrupted: 4 });
  const values = await scraped(metrics);
  assert.equal(values.get('longrun_executions{state="queued"}'), 0);
  assert.equal(values.get('longrun_executions{state="running"}'), 1);
  assert.equal(values.get('longrun_execution_events_total{event="completed"}'), 7);
  assert.equal(values.get('longrun_execution_events_total{event="lost"}'), 1);
  assert.equal(values.get('longrun_execution_events_total{event="retried"}'), 1);
  assert.equal(values.get('longrun_execution_events_total{event="disrupted"}'), 4);
});

test("metrics show connected actors by isolation, and the layers that their machines lack", async () => {
  const metrics = new LearnerMetrics();
  const actor = (isolationLevel: string, isolationMissing: string[], connected = true) => ({
    isolationLevel,
    isolationMissing,
    connected,
  });
  metrics.observeActors([actor("none", ["proc"])]);
  metrics.observeActors([
    actor("namespaces", []),
    actor("landlock", ["namespaces", "controlGroup"]),
    actor("landlock", ["namespaces"]),
    actor("landlock", ["namespaces"], false),
  ]);
  const values = await scraped(metrics);
  const numbers = [
    'actors_by_isolation{isolation="namespaces"}',
    'actors_by_isolation{isolation="landlock"}',
    'actors_by_isolation{isolation="none"}',
  ];
  const layers = ["namespaces", "controlGroup", "proc"].map((layer) => `actors_missing_layer{layer="${layer}"}`);
  assert.deepEqual(
    [...numbers, ...layers].map((name) => values.get(`longrun_${name}`)),
    [1, 2, undefined, 2, 1, undefined],
  );
});

test("metrics count flagged submissions and clamped rewards", async () => {
  const metrics = new LearnerMetrics();
  metrics.observeGrade({ guards: ["constant", "sampleSubmission"], clamped: true, capped: false });
  metrics.observeGrade({ guards: ["constant"], clamped: false, capped: true });
  metrics.observeGrade({ guards: [], clamped: false, capped: false });
  const values = await scraped(metrics);
  const count = (event: string) => values.get(`longrun_grading_events_total{event="${event}"}`);
  assert.deepEqual(["constant", "sampleSubmission", "clamped", "capped"].map(count), [2, 1, 1, 1]);
});

test("metrics' names have base units, and labels have no identifiers", async () => {
  const metrics = new LearnerMetrics();
  metrics.observeIteration(line());
  metrics.observeStage("execute", 1.5);
  for (const { name, type, help } of await metrics.registry.getMetricsAsJSON()) {
    assert.ok(help.length > 0, name);
    if (!name.startsWith("longrun_")) continue;
    assert.doesNotMatch(name, /milli|_ms|_mb|percent|_uid|_id$/, name);
    assert.equal(name.endsWith("_total"), String(type) === "counter", name);
  }
});

test("the metrics' server answers for metrics and health alone", async () => {
  const metrics = new LearnerMetrics();
  const health = { ok: true, message: "training, iteration 3" };
  const loading = { ok: false, message: "the weights are being loaded" };
  const probes = { live: () => health, ready: () => loading };
  const server = await serveMetrics("127.0.0.1:0", metrics.registry, probes);
  const get = (path: string, method = "GET") => fetch(`http://127.0.0.1:${server.port}${path}`, { method });
  try {
    const page = await get("/metrics?x=1");
    assert.match(page.headers.get("content-type") ?? "", /^text\/plain.*version=0\.0\.4/);
    assert.match(await page.text(), /longrun_iteration 0/);
    assert.equal(await (await get("/healthz")).text(), "training, iteration 3\n");
    const notReady = await get("/readyz");
    assert.deepEqual([notReady.status, await notReady.text()], [503, "the weights are being loaded\n"]);
    loading.ok = true;
    assert.equal((await get("/readyz")).status, 200);
    health.ok = false;
    assert.equal((await get("/healthz")).status, 503);
    assert.equal((await get("/")).status, 404);
    assert.equal((await get("/metrics", "POST")).status, 405);
  } finally {
    await server.close();
  }
});

const fine = () => ({ ok: true, message: "" });
const FINE = { live: fine, ready: fine };

const refusals: [listen: string, message: RegExp][] = [
  ["127.0.0.1", /^--metrics-listen 127\.0\.0\.1: write HOST:PORT/],
  ["127.0.0.1:99999", /: write HOST:PORT/],
  ["127.0.0.1:http", /: write HOST:PORT/],
  ["", /: write HOST:PORT/],
];

for (const [listen, message] of refusals) {
  test(`the metrics' server refuses to listen on '${listen}'`, async () => {
    const refused = serveMetrics(listen, new LearnerMetrics().registry, FINE);
    await assert.rejects(refused, (error) => error instanceof MetricsError && message.test(error.message));
  });
}

test("the metrics' server refuses a port in use in one line", async (t) => {
  const { registry } = new LearnerMetrics();
  const first = await serveMetrics("127.0.0.1:0", registry, FINE);
  t.after(() => first.close());
  const second = serveMetrics(`127.0.0.1:${first.port}`, registry, FINE);
  await assert.rejects(second, { code: "listen", message: /is in use; choose another one, or 0 for any free one$/ });
});

test("metrics show the newest evaluation, and none before the first one", async () => {
  const metrics = new LearnerMetrics();
  const policy = (iteration: number, meanScore: number | null) =>
    ({ iteration, validFraction: 0.5, meanScore, bestScore: null, meanNormalizedScore: 0.25, lineage: 1 }) as never;
  const settings = { task: "diamonds" } as never;
  const shown = async () => {
    const values = await scraped(metrics);
    const names = ["iteration", "valid_ratio", "score_mean", "score_normalized_mean", "score_best"];
    return names.map((name) => values.get(`longrun_evaluation_${name}{task="diamonds"}`));
  };
  metrics.showEvaluation({});
  assert.deepEqual(await shown(), [undefined, undefined, undefined, undefined, undefined]);
  metrics.showEvaluation({ settings, before: policy(0, 9), during: [policy(2, 8), policy(4, 7)] });
  assert.deepEqual(await shown(), [4, 0.5, 7, 0.25, undefined]);
  metrics.showEvaluation({ settings, before: policy(0, 9), during: [policy(4, 7)], after: policy(6, null) });
  assert.deepEqual(await shown(), [6, 0.5, undefined, 0.25, undefined]);
  const wage = { settings: { task: "wage" } as never, before: policy(1, 3) };
  metrics.showEvaluation({ tasks: { diamonds: { settings, before: policy(7, 5) }, wage } });
  assert.deepEqual(await shown(), [7, 0.5, 5, 0.25, undefined]);
  assert.equal((await scraped(metrics)).get('longrun_evaluation_score_mean{task="wage"}'), 3);
});
