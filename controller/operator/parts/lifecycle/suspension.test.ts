import assert from "node:assert/strict";
import { test } from "node:test";
import { type Context, type Look, settle } from "../../context.ts";
import { deploymentOf, NOW_MS, observedOf, podOf, runOf } from "../../run.fixture.ts";
import type { Suspended } from "../learner/learner-link.ts";
import { type LifecycleMemory, suspendLearner } from "./suspension.ts";

const run = runOf();
const RUNNING = { containerStatuses: [{ name: "learner", state: { running: {} } }] };
const CHECKPOINT = { iteration: 3, digest: "d", path: "checkpoints/3" };

test("The answer to an earlier suspension does not end a later one, which asks again", async () => {
  const answers: ((answer: Suspended) => void)[] = [];
  const context = {
    links: { suspend: () => new Promise<Suspended>((resolve) => answers.push(resolve)) },
    events: { record() {} },
    log: { info() {}, warn: assert.fail },
    wake() {},
  } as unknown as Context;
  const memory = {} as LifecycleMemory;
  const learner = { deployment: deploymentOf(1), learnerPod: podOf(run, "learner", RUNNING) };
  const observed = observedOf(run, { ...learner, link: { connected: true, sinceMs: NOW_MS } });
  const look = {
    key: "team/quick",
    observed,
    memory,
    calls: new Set(),
    context,
    nowMs: NOW_MS,
  } as unknown as Look<LifecycleMemory>;
  const ask = (fromMs: number) =>
    settle(look, suspendLearner(look, { reason: "spec.suspend is true", fromMs, drainSeconds: 0 }));
  const answer = async () => {
    answers.shift()!({ checkpoint: CHECKPOINT, running: 0 });
    await new Promise((resolve) => setImmediate(resolve));
  };

  ask(NOW_MS);
  ask(NOW_MS);
  assert.equal(answers.length, 1, "one call is on its way");
  Object.assign(memory, { suspension: undefined }); // the run was resumed
  ask(NOW_MS + 1);
  await answer();
  assert.deepEqual([memory.suspension?.done, memory.suspension?.checkpoint], [false, undefined]);
  ask(NOW_MS + 1);
  await answer();
  assert.deepEqual([memory.suspension?.done, memory.suspension?.checkpoint], [true, CHECKPOINT]);
  assert.deepEqual(suspendLearner(look, { reason: "", fromMs: NOW_MS, drainSeconds: 0 }), {}, "the learner may go");
});
