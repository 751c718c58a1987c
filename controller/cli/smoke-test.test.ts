import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError } from "../operator/kube/errors.ts";
import type { KubeObject } from "../operator/kube/types.ts";
import { smokeTest } from "./smoke-test.ts";

const MANIFEST = `
apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: smoke }
spec: { tasks: [{ name: diamonds }], model: { policy: quickstart } }
`;
const ready = { type: "Ready", status: "False", reason: "Unschedulable", message: "no node has enough memory" };
const failed = { type: "Succeeded", status: "False", reason: "RunFailed", message: "the learner gave up" };

/** Returns an API server with one TrainingRun, whose status takes the values of `statuses` one after the other. */
function server(statuses: (object | undefined)[], earlier = false) {
  let stored: KubeObject | undefined = earlier ? { metadata: { name: "smoke", uid: "earlier" } } : undefined;
  const deleted: string[] = [];
  const created: KubeObject[] = [];
  let at = 0;
  return {
    ...{ deleted, created },
    client: {
      async create(_: unknown, object: KubeObject) {
        created.push(object);
        stored = { ...object, metadata: { ...object.metadata, uid: "made" } };
        return stored;
      },
      async get() {
        if (stored?.metadata.uid !== "made") return stored;
        return { ...stored, status: statuses[Math.min(at++, statuses.length - 1)] };
      },
      async delete(_: unknown, __: unknown, { uid }: { uid: string }) {
        deleted.push(uid);
        stored = undefined;
        return true;
      },
    } as never,
  };
}

const run = (client: never, timeoutSeconds = 5, said: string[] = []) =>
  smokeTest({
    ...{ client, namespace: "team", manifest: MANIFEST, source: "smoke.yaml", timeoutSeconds, pollSeconds: 0.01 },
    ...{ unseenSeconds: 0.05, say: (line) => said.push(line), signal: new AbortController().signal },
  });

describe("smokeTest", () => {
  test("The cluster fills in fields that the manifest leaves out, since its CRD may be another release's", async () => {
    const { client, created } = server([{ phase: "Succeeded" }]);
    await run(client);
    assert.deepEqual(created, [
      {
        ...{ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "smoke", namespace: "team" } },
        spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" } },
      },
    ]);
  });

  test("A run that succeeds is reported once, and deleted", async () => {
    const { client, deleted } = server([
      {},
      { phase: "Pending", conditions: [ready] },
      { phase: "Pending", conditions: [ready] },
      { phase: "Succeeded" },
    ]);
    const said: string[] = [];
    assert.equal(await run(client, 5, said), 0);
    assert.deepEqual(said, [
      "TrainingRun team/smoke is made",
      "not seen by a controller yet",
      "Pending: Unschedulable: no node has enough memory",
      "Succeeded",
    ]);
    assert.deepEqual(deleted, ["made"]);
  });

  test("A run of an earlier test is deleted first", async () => {
    const { client, deleted } = server([{ phase: "Succeeded" }], true);
    assert.equal(await run(client), 0);
    assert.deepEqual(deleted, ["earlier", "made"]);
  });

  const FAILURES: [what: string, status: object | undefined, message: RegExp][] = [
    [
      "no controller sees",
      undefined,
      /^no controller has seen TrainingRun team\/smoke within 0\.05 s: .*serves this namespace .*test\.namespace/,
    ],
    ["fails", { phase: "Failed", conditions: [failed] }, /^TrainingRun team\/smoke failed: the learner gave up$/],
    [
      "does not end",
      { phase: "Pending", conditions: [ready] },
      /not done after 0\.1 s: Pending: Unschedulable: no node/,
    ],
  ];
  for (const [what, status, message] of FAILURES)
    test(`A run that ${what} is reported in one line, and deleted`, async () => {
      const { client, deleted } = server([status]);
      await assert.rejects(run(client, 0.1), { code: "failed", message });
      assert.deepEqual(deleted, ["made"]);
    });

  test("A cluster without the CRD is reported", async () => {
    const client = {
      get: async () => undefined,
      create: async () => {
        throw new ApiError("POST: 404", { status: 404, reason: "NotFound" });
      },
    } as never;
    await assert.rejects(run(client), { code: "failed", message: /install the CRD/ });
  });
});
