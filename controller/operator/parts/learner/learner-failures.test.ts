import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FailuresStatus } from "../../../../crds/trainingrun.ts";
import { messages } from "../../../../proto/service.ts";
import { volumeRemedy } from "../../../../proto/volume.ts";
import type { Observed } from "../../observe.ts";
import { linkOf, observedOf, podOf, runOf } from "../../run.fixture.ts";
import { askedVolume, describeEnd, exhaustion, failureKind, lastWords, learnerFailures } from "./learner-failures.ts";

const FINISHED = "2026-01-01T00:00:00Z";
const ended = (exitCode: number, more: object = {}) => ({ exitCode, message: "why\n", finishedAt: FINISHED, ...more });
/** A learner's pod as the kubelet shows it. */
const podWith = (container: object, { uid = "pod-1", conditions = [] as object[] } = {}) => {
  const pod = podOf(runOf(), "learner", {
    phase: "Running",
    conditions,
    containerStatuses: [{ name: "learner", ...container }],
  });
  return { ...pod, metadata: { ...pod.metadata, uid } };
};
const crashed = (restartCount: number, exitCode = 74, more: object = {}) =>
  podWith({ restartCount, state: { terminated: ended(exitCode, more) } });
const backingOff = (restartCount: number, exitCode = 74) =>
  podWith({
    restartCount,
    state: { waiting: { reason: "CrashLoopBackOff" } },
    lastState: { terminated: ended(exitCode) },
  });
const startedAgain = (restartCount: number, exitCode = 74) =>
  podWith({ restartCount, state: { running: {} }, lastState: { terminated: ended(exitCode) } });
const look = (
  pod: object | undefined,
  failures?: FailuresStatus,
  { spec = {}, status = {}, link = undefined as object | undefined } = {},
) =>
  learnerFailures(
    observedOf(runOf(spec, { ...(failures && { failures }), ...status }), {
      learnerPod: pod as Observed["learnerPod"],
      link: link as Observed["link"],
    }),
  );
const counted = (count: number, podEnds: number, more: object = {}): FailuresStatus => ({
  ...{ count, class: "Infrastructure", message: "the learner ended with status 74 (why)", lastFailureTime: FINISHED },
  ...{ iteration: 0, podUid: "pod-1", podEnds, ...more },
});

test("A learner whose volume is too small asks for a size; a learner that ended otherwise asks for none", () => {
  const message = `two checkpoints do not fit; ${volumeRemedy(310e9)} (learner.checkpoint.keepLast 3)`;
  const asked = (pod: object) => askedVolume(pod as Parameters<typeof askedVolume>[0]);
  assert.equal(asked(crashed(0, 73, { message })), "289Gi");
  assert.equal(asked(crashed(0, 1, { message })), undefined);
  assert.equal(asked(crashed(0, 73)), undefined);
  assert.equal(asked(startedAgain(0)), undefined);
});

describe("learnerFailures", () => {
  test("A learner without a pod, or whose pod has never ended, has no failure", () => {
    assert.equal(look(undefined), undefined);
    assert.equal(look(podWith({ restartCount: 0, state: { running: {} } })), undefined);
    assert.equal(look(podWith({ restartCount: 0, state: { waiting: { reason: "ContainerCreating" } } })), undefined);
  });

  test("One end counts as one failure in every form that the kubelet reports", () => {
    let failures: FailuresStatus | undefined;
    for (const pod of [crashed(0), backingOff(0), startedAgain(1)]) {
      failures = look(pod, failures);
      assert.deepEqual(failures, counted(1, 1));
    }
    for (const pod of [crashed(1), backingOff(1), startedAgain(2)]) {
      failures = look(pod, failures);
      assert.deepEqual(failures, counted(2, 2));
    }
    failures = look(undefined, failures);
    assert.deepEqual(failures, counted(2, 2), "a controller that sees no pod forgets nothing");
  });

  test("Of several unseen ends the last one counts; the count of another pod begins anew", () => {
    assert.deepEqual(look(backingOff(4), counted(1, 1)), counted(2, 5));
    assert.deepEqual(
      look({ ...crashed(0), metadata: { uid: "pod-2" } }, counted(5, 5)),
      counted(6, 1, { podUid: "pod-2" }),
    );
  });

  test("A finished iteration in the status or in the learner's report resets the count", () => {
    const before = counted(7, 7, { iteration: 3 });
    assert.deepEqual(look(startedAgain(7), before, { status: { iteration: 3 } }), before);
    assert.equal(look(startedAgain(7), before, { status: { iteration: 4 } })!.count, 0);
    const link = linkOf({ iteration: 5, phase: messages.Phase.GENERATING });
    assert.equal(look(startedAgain(7), before, { status: { iteration: 3 }, link })!.count, 0);
    const next = look(crashed(7), before, { status: { iteration: 4 } })!;
    assert.deepEqual([next.count, next.iteration, next.podEnds], [1, 4, 8]);
    const earlier = linkOf({ iteration: 2, phase: messages.Phase.GENERATING });
    assert.equal(
      look(crashed(7), before, { status: { iteration: 3 }, link: earlier })!.count,
      8,
      "going back is no progress",
    );
  });

  test("A suspension resets the count, and an end during the suspension does not count", () => {
    assert.equal(look(startedAgain(7), counted(7, 7), { spec: { suspend: true } })!.count, 0);
    const ending = look(crashed(7), counted(7, 7), { spec: { suspend: true } })!;
    assert.deepEqual([ending.count, ending.podEnds], [0, 8]);
    assert.equal(look(startedAgain(8), ending)!.count, 0, "the count stays 0 after the suspension");
  });

  test("A full volume and bad input never count", () => {
    assert.deepEqual(
      look(crashed(2, 73), counted(2, 2)),
      counted(2, 3, { class: "Resource", message: "the learner ended with status 73 (why)" }),
    );
    assert.deepEqual(look(crashed(2, 2), counted(2, 2)), counted(2, 2));
    assert.equal(look(crashed(0, 2)), undefined);
  });

  test("An evicted or preempted pod is no failure", () => {
    const conditions = [{ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI" }];
    const container = { restartCount: 0, state: { terminated: ended(137) } };
    assert.equal(look(podWith(container, { conditions })), undefined);
  });
});

test("The controller names the kind of each end of a learner", () => {
  const cases: [exitCode: number, reason: string | undefined, kind: string, words: string][] = [
    [74, "Error", "infrastructure", "ended with status 74 (why)"],
    [71, "Error", "resource", "ended with status 71 (why)"],
    [137, "OOMKilled", "resource", "was killed for memory"],
    [73, "Error", "volumeFull", "ended with status 73 (why)"],
    [2, "Error", "input", "ended with status 2 (why)"],
    [1, "Error", "fault", "ended with status 1 (why)"],
    [134, "Error", "fault", "was killed by signal 6"],
    [139, "Error", "fault", "was killed by signal 11"],
    [137, "Error", "infrastructure", "was killed by signal 9"],
    [143, "Error", "infrastructure", "was killed by signal 15"],
    [255, "Unknown", "infrastructure", "ended with status 255 (why)"],
    [0, "Completed", "infrastructure", "was stopped, which the kubelet does when a probe fails"],
  ];
  for (const [exitCode, reason, kind, words] of cases) {
    const it = ended(exitCode, { reason });
    assert.deepEqual([failureKind(it), describeEnd(it)], [kind, words]);
  }
  assert.equal(lastWords(undefined), "it left no message; see its log");
});

describe("exhaustion", () => {
  const of = (count: number, retries: number, spec: object = {}, more: object = {}) =>
    exhaustion(observedOf(runOf({ failurePolicy: { retries }, ...spec }, { failures: counted(count, count, more) })));

  test("A run is exhausted after more failures than retries, unless it is suspended", () => {
    assert.equal(of(0, 0), undefined);
    assert.equal(of(20, 20), undefined);
    assert.equal(of(21, 20)?.reason, "Infrastructure");
    assert.equal(of(21, 20, { suspend: true }), undefined);
  });

  test("The controller first hears a learner that runs again, since it may have finished an iteration unseen", () => {
    const run = runOf({ failurePolicy: { retries: 2 } }, { iteration: 4, failures: counted(2, 2, { iteration: 4 }) });
    const again = (link: Observed["link"]) =>
      exhaustion(observedOf(run, { learnerPod: startedAgain(3) as Observed["learnerPod"], link }));
    assert.equal(again(undefined), undefined);
    assert.equal(again(linkOf({ iteration: 6, phase: messages.Phase.GENERATING })), undefined);
    assert.equal(again(linkOf({ iteration: 5, phase: messages.Phase.GENERATING }))?.reason, "Infrastructure");
    const down = observedOf(run, { learnerPod: backingOff(2) as Observed["learnerPod"] });
    assert.equal(exhaustion(down)?.reason, "Infrastructure");
  });

  test("The message has the kind, the number and the remedy", () => {
    assert.equal(
      of(21, 20)!.message,
      "the learner failed 21 times without finishing an iteration, the last time it ended with status 74 (why); " +
        "spec.failurePolicy.retries is 20. Check its node, GPU, volume and network; then kubectl longrun resume quick, " +
        "or set spec.suspend to true and, once the run is Suspended, to false",
    );
    const bug = of(1, 0, {}, { class: "Fault", message: "the learner ended with status 1 (x is not a function)" })!;
    assert.equal(bug.reason, "Fault");
    assert.match(
      bug.message,
      /^the learner failed: it ended with status 1 \(x is not a function\); spec\.fail\S+ is 0\. It is a bug/,
    );
  });
});
