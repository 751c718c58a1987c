import assert from "node:assert/strict";
import { test } from "node:test";
import { Health } from "./health.ts";

test("a learner is ready once weights are loaded and the server listens, and alive while its worker lives", () => {
  const engine: { failure: Error | undefined } = { failure: undefined };
  const health = new Health(() => "TRAINING");
  assert.deepEqual(health.live(), { ok: true, message: "TRAINING" }, "loading takes as long as it takes");
  assert.deepEqual(health.ready(), { ok: false, message: "the weights are being loaded" });
  health.loaded(engine);
  assert.deepEqual(health.ready(), { ok: false, message: "the gRPC server does not listen yet" });
  health.listening();
  assert.deepEqual(health.ready(), { ok: true, message: "TRAINING" });
  engine.failure = new Error("the engine's worker has ended (1)");
  for (const probe of [health.live(), health.ready()])
    assert.deepEqual(probe, { ok: false, message: "the engine's worker has ended (1)" });
  health.over();
  assert.ok(health.live().ok && health.ready().ok, "a run that is over needs no worker");
});

test("a finished run needs no weights to be ready", () => {
  const health = new Health(() => "SUCCEEDED");
  health.over();
  assert.ok(!health.ready().ok);
  health.listening();
  assert.ok(health.ready().ok);
});
