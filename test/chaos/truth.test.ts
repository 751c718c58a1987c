import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiRequest } from "../faults/api-request.ts";
import type { ClusterApi, Pod } from "./cluster-api.ts";
import { Truth } from "./truth.ts";

const MINUTE_MS = 60_000;

/** A pod whose container runs. */
function pod(component: string): Pod {
  const status = { phase: "Running", containerStatuses: [{ state: { running: {} } }] };
  return { metadata: { labels: { "app.kubernetes.io/component": component } }, status } as never;
}

function statusWrite(status: object): ApiRequest {
  const request = { resource: "longrun.dev/trainingruns", subresource: "status", name: "run", code: 200 };
  return { ...request, answer: { status } } as never;
}

const is = (type: string) => ({ type, status: "True", reason: "Some", message: "what happened" });

/** A run of three iterations, two of which are finished; `pods` exist. */
function world() {
  const there: { pods: Pod[]; done: number } = { pods: [], done: 2 };
  const api = { pods: async () => there.pods } as unknown as ClusterApi;
  const truth = new Truth(api, "run", 3, () => there.done);
  return { there, truth };
}

test("A status that is true gives no finding", async () => {
  const { truth, there } = world();
  there.pods = [pod("learner"), pod("actor")];
  const conditions = [is("Ready"), is("LearnerAvailable")];
  await truth.afterWrite(statusWrite({ phase: "Running", conditions, iteration: 2, actors: { running: 1 } }));
  await truth.afterWrite(statusWrite({ phase: "Failed", conditions: [is("Failed")] }));
  there.done = 3;
  await truth.afterWrite(statusWrite({ phase: "Succeeded", conditions: [is("Succeeded")], iteration: 3 }));
  assert.deepEqual([truth.findings, truth.writes], [[], 3]);
});

test("A status that runs ahead of the run, or that contradicts itself, gives a finding", async () => {
  const { truth } = world();
  await truth.afterWrite(statusWrite({ phase: "Succeeded", conditions: [is("Succeeded")] }));
  await truth.afterWrite(statusWrite({ phase: "Running", iteration: 3 }));
  await truth.afterWrite(statusWrite({ phase: "Failed", conditions: [{ ...is("Failed"), message: "" }] }));
  await truth.afterWrite(statusWrite({ phase: "Pending", conditions: [is("Ready")] }));
  assert.deepEqual(truth.findings, [
    "untrue was written: Succeeded after 2 of 3 iterations",
    "untrue was written: iteration 3, and 2 are finished",
    "untrue was written: Failed without a reason",
    "untrue was written: Ready in phase Pending",
  ]);
});

test("A status that is written a minute after it became false is untrue; a status that stands is not", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1000 * MINUTE_MS });
  const { truth, there } = world();
  const status = { phase: "Running", conditions: [is("LearnerAvailable")], actors: { running: 1 } };
  for (let second = 0; second < 60; second++) {
    await truth.look();
    t.mock.timers.tick(1000);
  }
  await truth.standing(status);
  assert.deepEqual(truth.findings, []);
  await truth.afterWrite(statusWrite(status));
  assert.deepEqual(truth.findings, [
    "untrue was written: LearnerAvailable, and no learner has run for 60 s",
    "untrue was written: 1 actors run, and there were 0 at the most",
  ]);
  there.pods = [pod("learner")];
  await truth.look();
  t.mock.timers.tick(2 * MINUTE_MS);
  await truth.afterWrite(statusWrite({ phase: "Suspended", conditions: [is("Suspended")] }));
  assert.equal(truth.findings.length, 2, "nobody looked meanwhile");
});
