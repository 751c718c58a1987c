/** Certificates of a run that its TrainingRuntime refuses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Look } from "../../context.ts";
import type { Observed } from "../../observe.ts";
import { deploymentOf, NOW_MS, observedOf, runOf } from "../../run.fixture.ts";
import { certificates } from "./part.ts";

const REFUSES = { reason: "RuntimeRefuses", message: "it takes too much" } as const;

/** Returns the Secrets that are written, if those that are there have expired. */
async function writtenOf(change: Partial<Observed>): Promise<string[]> {
  const written: string[] = [];
  const secret = { metadata: { resourceVersion: "1" }, data: {} };
  const look = {
    observed: observedOf(runOf(), { refusal: REFUSES, ...change }),
    memory: { dates: undefined },
    writes: {
      apply: async (_: object, { metadata: { name } }: { metadata: { name: string } }) => {
        written.push(name);
        return { kind: "applied" };
      },
    },
    context: { events: { record: () => {} }, log: { info: () => {} }, settings: {} },
    nowMs: NOW_MS,
  };
  if (change.deployment) Object.assign(look.observed, { secrets: { authority: secret, learner: secret } });
  await certificates.reconcile!(look as unknown as Look<never>, undefined, { mayCreate: false } as never);
  return written.sort();
}

test("A learner that trains on keeps valid certificates", async () =>
  assert.deepEqual(await writtenOf({ deployment: deploymentOf(1) }), ["quick-ca", "quick-learner-tls"]));

test("A run without a learner gets none", async () => assert.deepEqual(await writtenOf({}), []));
