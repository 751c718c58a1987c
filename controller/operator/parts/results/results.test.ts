import assert from "node:assert/strict";
import { test } from "node:test";
import type { Look } from "../../context.ts";
import type { Job, Pod } from "../../kube/resources.ts";
import { at, NOW_MS, observedOf, podOf, runOf } from "../../run.fixture.ts";
import { type CopyJob, resultsStatus, untoldFailure } from "./results.ts";

const SPEC = { results: { s3: { bucket: "results", prefix: "quick" }, intervalSeconds: 60 } };
const CHECKPOINT = { iteration: 3, digest: "d", path: "checkpoints/1-000003" };
const OVER = {
  completionTime: at(-100),
  checkpoint: CHECKPOINT,
  conditions: [{ type: "Succeeded", status: "True", reason: "Completed", message: "m", lastTransitionTime: at(-100) }],
};

/** Returns what a reconcile sees after the Job of a copy has failed, a second ago. */
function failed(
  spec: object,
  status: object,
  { reason = "DeadlineExceeded", pod = undefined as Pod | undefined } = {},
) {
  const run = runOf({ ...SPEC, ...spec }, status);
  const condition = { type: "Failed", status: "True", reason, lastTransitionTime: at(-1) };
  const job = {
    metadata: { name: "quick-results" },
    spec: { activeDeadlineSeconds: 900 },
    status: { conditions: [condition] },
  };
  const copy: CopyJob = { job: job as unknown as Job, pod };
  const observed = observedOf(run);
  const told: string[] = [];
  const context = {
    events: { record: (_: unknown, { note }: { note: string }) => told.push(note) },
    log: { warn() {} },
  };
  const look = { key: "team/quick", observed, context, nowMs: NOW_MS } as unknown as Look;
  return { look, copy, told };
}
const messageOf = (...args: Parameters<typeof failed>) => {
  const { look, copy } = failed(...args);
  return resultsStatus(look, copy)?.message;
};
const pod = (state: object) =>
  podOf(runOf(), "learner", { phase: "Pending", containerStatuses: [{ name: "push", image: "img", state }] });
const LATE =
  "results could not be copied to s3://results/quick: it did not end within 900 s (spec.results.deadlineSeconds)";
const AGAIN = "it is tried again every 60 s (spec.results.intervalSeconds)";

test("A late copy's message has its Job's seconds, and its pod's message or the reason why it waited", () => {
  assert.equal(messageOf({}, {}), `${LATE}; ${AGAIN}`);
  const said = pod({ terminated: { exitCode: 1, message: "part 7 of 9\nthe bucket answers 503" } });
  const message = `${LATE}: the bucket answers 503; ${AGAIN}`;
  assert.equal(messageOf({}, {}, { pod: said }), message);
  const unresolved = pod({
    terminated: { exitCode: 1, message: "cannot reach s3.test: getaddrinfo EAI_AGAIN s3.test" },
  });
  assert.match(
    messageOf({}, {}, { pod: unresolved })!,
    /EAI_AGAIN s3\.test; its names do not resolve: .*networkPolicy\.dns/,
  );
  const waits = pod({ waiting: { reason: "ErrImagePull", message: "not found" } });
  assert.match(messageOf({}, {}, { pod: waits })!, /deadlineSeconds\): image img cannot be pulled \(not found\)/);
  const { look, copy, told } = failed({}, { results: { url: "s3://results/quick", message } });
  assert.deepEqual(
    [resultsStatus(look, copy)?.message, told],
    [message, []],
    "the pod is gone, and nothing new is to tell",
  );
});

test("The last copy of a run that its ttl deletes is not repeated; the message says what happens to the volume", () => {
  const ended = (ttlSecondsAfterFinished: number, retain: string) =>
    messageOf({ ttlSecondsAfterFinished, learner: { storage: { retain } } }, OVER);
  assert.match(
    ended(100, "Always")!,
    /; the run is deleted 100 s after its end \(spec\.ttl.*without this copy: volume quick-data stays /,
  );
  assert.match(ended(158, "Never")!, /without this copy: volume quick-data goes with the run/);
  assert.equal(ended(160, "Always"), `${LATE}; ${AGAIN}`);
  const { look, copy } = failed({ ttlSecondsAfterFinished: 100 }, OVER);
  const message = untoldFailure(look, copy);
  assert.match(message!, /without this copy/);
  const told = failed({ ttlSecondsAfterFinished: 100 }, { ...OVER, results: { message } });
  assert.equal(untoldFailure(told.look, told.copy), undefined);
});

test("A Job that the API server refuses is told once, with its cause", () => {
  const { look, told } = failed({}, {});
  const refused = { reason: "QuotaExceeded", message: "no Job more than 5" } as const;
  const message = "job/quick-results cannot be created: no Job more than 5";
  const none = { job: undefined, pod: undefined };
  assert.deepEqual([resultsStatus(look, none, { refused })?.message, told], [message, [message]]);
  const later = failed({}, { results: { url: "s3://results/quick", message } });
  assert.deepEqual([resultsStatus(later.look, none, { refused })?.message, later.told], [message, []]);
});
