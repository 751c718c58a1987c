import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineSeconds } from "../proto/engine-seconds.ts";
import { EngineTime } from "./engine-time.ts";
import { Phases } from "./phases.ts";
import { StatusBoard } from "./server/status.ts";

const sum = (seconds: EngineSeconds) => Object.values(seconds).reduce((total, value) => total + value, 0);

test("every second of the engine counts for one use", () => {
  let nowMs = 5000;
  const time = new EngineTime(() => nowMs);
  const passes = (seconds: number) => {
    nowMs += seconds * 1000;
  };
  passes(7);
  time.restart();
  passes(1);
  time.is("generating");
  passes(2);
  time.is("generating");
  passes(3);
  time.is("idleActors");
  passes(4);
  assert.deepEqual(time.seconds, {
    ...{ generating: 5, updating: 0, idleActors: 4, idlePrograms: 0, idleStaleness: 0, idleOther: 1 },
  });
  passes(1);
  assert.equal(sum(time.seconds), 11);
  time.restart();
  passes(2);
  assert.deepEqual([time.seconds.idleActors, sum(time.seconds)], [2, 2], "the use goes on, the count begins anew");
});

test("the phases' seconds agree with the engine's seconds, and their sum is the iteration's time", async () => {
  const never = new AbortController().signal;
  const progress = { state: { iteration: 0, elapsedSeconds: 0 }, lines: [] };
  const phases = new Phases({ status: new StatusBoard(), progress }, never, never);
  phases.enter("evaluatePolicy");
  await sleep(5);
  phases.reset();
  const from = performance.now();
  const pass = () => sleep(5 + 20 * Math.random());
  for (const [name, idle] of [
    ["generate"],
    ["execute", "idleActors"],
    ["execute", "idleStaleness"],
    ["generate"],
    ["execute", "idlePrograms"],
    ["evaluate"],
    ["checkpoint"],
    ["train"],
  ] as const) {
    phases.enter(name, 4, 1, idle);
    await pass();
  }
  phases.end();
  await pass();
  const { engineSeconds, seconds } = phases;
  const whole = (performance.now() - from) / 1000;
  const isNear = (value: number | undefined, expected: number) =>
    assert.ok(Math.abs(value! - expected) < 1e-3, `${value} is not ${expected}`);
  isNear(sum(engineSeconds), whole);
  isNear(seconds.generate, engineSeconds.generating);
  isNear(seconds.execute, engineSeconds.idleActors + engineSeconds.idleStaleness + engineSeconds.idlePrograms);
  isNear(seconds.evaluate! + seconds.train!, engineSeconds.updating);
  for (const [use, value] of Object.entries(engineSeconds)) assert.ok(value > 0.004, `${use} ${value}`);
  assert.ok(engineSeconds.idleOther > seconds.checkpoint! + 0.004, "time outside of phases is idleOther");
});
