/** What a run gives back although its TrainingRuntime refuses it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Look } from "../../context.ts";
import { NOW_MS, observedOf, runOf } from "../../run.fixture.ts";
import type { Finding } from "../../status/conditions.ts";
import { generators } from "../generators/part.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import { quota } from "./part.ts";

const REFUSES: Finding = { reason: "RuntimeRefuses", message: "it takes too much" };
const MISSING: Finding = { reason: "RuntimeMissing", message: "there is none" };
const run = runOf({ generation: { replicas: { min: 2, max: 2 } } }, { generation: { ready: 2, replicas: 2 } });
const workload = { metadata: { name: "quick", uid: "w" }, spec: {}, status: {} };

/** Returns what the parts write, in a stage of a run with a Workload and two generators. */
async function writesOf(stage: Stage, refusal: Finding): Promise<{ written: string[]; mayCreate: unknown }> {
  const written: string[] = [];
  const deployment = { metadata: { name: "quick-generators" }, spec: { replicas: 2 } };
  const look = {
    observed: {
      ...observedOf(run, { workload: workload as never, refusal }),
      generators: { deployment, pods: [], secret: undefined },
    },
    memory: { unusedSinceMs: new Map() },
    context: { settings: { kueue: true } },
    writes: {
      remove: async ({ kind }: { kind: string }) => void written.push(`remove ${kind}`),
      patch: async ({ kind }: { kind: string }, _: object, { spec }: { spec?: { replicas?: number } }) =>
        void written.push(spec ? `${kind} replicas ${spec.replicas}` : `patch ${kind}`),
      apply: async ({ kind }: { kind: string }) => void written.push(`apply ${kind}`),
    },
    nowMs: NOW_MS,
  } as unknown as Look<never>;
  const lifecycle = { stage, learnerReplicas: stage === "Running" ? 1 : 0 };
  const done = { lifecycle, workload, unplaced: undefined, certified: true };
  const { given } = await quota.reconcile!(look, undefined, done as never);
  await generators.reconcile!(look, undefined, { ...done, ...given } as never);
  return { written, mayCreate: given!.mayCreate };
}

describe("A run that its TrainingRuntime refuses", () => {
  const CASES: [stage: Stage, refusal: Finding, written: string[]][] = [
    ["Running", REFUSES, []],
    ["Suspended", REFUSES, ["remove Workload", "Deployment replicas 0"]],
    ["Ended", REFUSES, ["patch Workload", "Deployment replicas 0"]],
    ["Refused", REFUSES, ["remove Workload", "Deployment replicas 0"]],
    ["Suspended", MISSING, ["remove Workload", "Deployment replicas 0"]],
    // The runtime may appear in a moment, as in an upgrade: the run keeps its place in the queue.
    ["Refused", MISSING, ["Deployment replicas 0"]],
  ];
  for (const [stage, refusal, expected] of CASES)
    test(`${stage}, ${refusal.reason}: it gives back quota and generators, and nothing is created`, async () => {
      const { written, mayCreate } = await writesOf(stage, refusal);
      assert.deepEqual([written, mayCreate], [expected, false]);
    });
});
