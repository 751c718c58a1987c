import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { readSchema } from "../../../crds/schema.ts";
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { runOf } from "../run.fixture.ts";
import { type RunMeasurement, RunMetrics } from "./run-metrics.ts";

const name = { namespace: "team", run: "run" };

const ready = (reason: string, scaled = "Scaling"): TrainingRunStatus["conditions"] =>
  [
    { type: "Ready", status: "False", reason, message: "" },
    { type: "ActorsScaled", status: "False", reason: scaled, message: "" },
    { type: "LearnerAvailable", status: "True", reason: "Connected", message: "" },
  ].map((it) => ({ ...it, lastTransitionTime: "2026-01-01T00:00:00Z" })) as TrainingRunStatus["conditions"];

const measurement = (change: Partial<RunMeasurement> = {}): RunMeasurement => ({
  run: runOf(),
  status: {
    phase: "Running",
    iteration: 3,
    failures: { count: 2 },
    conditions: ready("Unschedulable", "Unschedulable")!,
  },
  demand: { queued: 5, running: 2 },
  executions: { completed: 10, lost: 1, retried: 2, disrupted: 3 },
  actors: { desired: 4, running: 1, starting: 3, draining: 0, idle: 0 },
  generators: 0,
  learnerDue: true,
  certificatesExpireAtMs: 5000,
  ...change,
});

/** `longrun_run_x{label="value"}` of the one run -> number. */
async function scrape(registry: Registry): Promise<Map<string, number>> {
  const rows = (await registry.metrics()).split("\n").filter((row) => row.startsWith("longrun_"));
  const short = (text: string) => text.replace('namespace="team",run="run"', "").replace("{,", "{").replace("{}", "");
  return new Map(
    rows.map((row) => [short(row.slice(0, row.lastIndexOf(" "))), Number(row.slice(row.lastIndexOf(" ") + 1))]),
  );
}

test("The metrics show a run", async () => {
  const registry = new Registry();
  const metrics = new RunMetrics(registry);
  metrics.observe(name, measurement());
  metrics.scaled(name, "up");
  const values = await scrape(registry);
  const expected = {
    'longrun_run_phase{phase="Running"}': 1,
    'longrun_run_phase{phase="Failed"}': 0,
    longrun_run_iteration: 3,
    'longrun_run_executions{state="queued"}': 5,
    'longrun_run_execution_events_total{event="lost"}': 1,
    'longrun_run_actors{state="desired"}': 4,
    'longrun_run_actors_waiting{reason="Unschedulable"}': 3,
    'longrun_run_blocked{reason="Unschedulable"}': 1,
    'longrun_run_scalings_total{direction="up"}': 1,
    'longrun_run_scalings_total{direction="down"}': 0,
    longrun_run_learner_available: 1,
    longrun_run_learner_failures: 2,
    longrun_run_certificate_expiration_timestamp_seconds: 5,
    'longrun_run_gpus{component="learner"}': 0,
  };
  for (const [series, value] of Object.entries(expected)) assert.equal(values.get(series), value, series);
});

const phases = readSchema().properties!.status!.properties!.phase!.enum as NonNullable<TrainingRunStatus["phase"]>[];
for (const phase of phases)
  test(`The metrics of a run that is ${phase} have exactly one phase with 1`, async () => {
    const registry = new Registry();
    new RunMetrics(registry).observe(name, measurement({ status: { phase, iteration: 3 } }));
    const shown = [...(await scrape(registry))].filter(([series]) => series.startsWith("longrun_run_phase"));
    assert.deepEqual(
      shown.filter(([, value]) => value === 1),
      [[`longrun_run_phase{phase="${phase}"}`, 1]],
    );
    assert.equal(shown.length, phases.length);
  });

test("A reason disappears with its cause, counters never fall, and metrics that do not apply are absent", async () => {
  const registry = new Registry();
  const metrics = new RunMetrics(registry);
  metrics.observe(name, measurement());
  metrics.observe(
    name,
    measurement({
      status: { phase: "Suspended", iteration: 3, conditions: ready("Suspended")! },
      executions: { completed: 12, lost: 0, retried: 2, disrupted: 4 },
      actors: { desired: 0, running: 0, starting: 0, draining: 0, idle: 0 },
      learnerDue: false,
      certificatesExpireAtMs: undefined,
    }),
  );
  const values = await scrape(registry);
  assert.deepEqual(
    [...values.keys()].filter((series) => /blocked|waiting|available|expiration/.test(series)),
    [],
  );
  assert.equal(values.get('longrun_run_phase{phase="Running"}'), 0);
  assert.equal(values.get('longrun_run_execution_events_total{event="completed"}'), 12);
  assert.equal(values.get('longrun_run_execution_events_total{event="lost"}'), 1);
  assert.equal(values.get('longrun_run_execution_events_total{event="disrupted"}'), 4);
});

test("The metrics count GPUs, and parts of one, of the learner, each slot of the actors and each generator", async () => {
  const registry = new Registry();
  const run = runOf();
  run.spec.learner.resources = { limits: { "nvidia.com/gpu": 2 } };
  run.spec.actors.sandboxResources = { limits: { "nvidia.com/gpu": 1 } };
  run.spec.actors.slots = 3;
  run.spec.actors.resources = { limits: { cpu: 1, "nvidia.com/gpu.shared": "1" } };
  run.spec.generation = runOf({ generation: { resources: { limits: { "nvidia.com/mig-1g.10gb": 1 } } } }).spec
    .generation!;
  new RunMetrics(registry).observe(name, measurement({ run, generators: 5 }));
  const values = await scrape(registry);
  assert.equal(values.get('longrun_run_gpus{component="generator"}'), 5);
  assert.equal(values.get('longrun_run_gpus{component="learner"}'), 2);
  assert.equal(values.get('longrun_run_gpus{component="actor"}'), 4 * (3 + 1));
});

test("A run that is gone has no metrics", async () => {
  const registry = new Registry();
  const metrics = new RunMetrics(registry);
  metrics.observe(name, measurement());
  metrics.scaled(name, "up");
  metrics.forget(name);
  assert.deepEqual([...(await scrape(registry)).keys()], []);
});
