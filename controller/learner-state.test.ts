import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { messages } from "../proto/service.ts";
import { ApiError } from "./kube/errors.ts";
import { type LearnerFacts, learnerState } from "./learner-state.ts";
import type { Stage } from "./lifecycle.ts";
import type { Observed } from "./observe.ts";
import { writeBlocker } from "./refusals.ts";
import { at, deploymentOf, linkOf, NOW_MS, observedOf, podOf, runOf } from "./run.fixture.ts";

const { Phase } = messages;
const RUN = runOf();
const pod = (status: object) => ({ deployment: deploymentOf(1), learnerPod: podOf(RUN, "learner", status) });
const container = (change: object) =>
  pod({ phase: "Running", containerStatuses: [{ name: "learner", image: "img", ready: false, ...change }] });
const unscheduled = (reason: string, message: string) =>
  pod({ phase: "Pending", conditions: [{ type: "PodScheduled", status: "False", reason, message }] });
const UNBOUND = "pod has unbound immediate PersistentVolumeClaims";
const claimOf = (spec: object) => ({ metadata: { name: "quick-data" }, spec }) as NonNullable<Observed["volume"]>;
const waiting = (reason: string, message = "") => container({ state: { waiting: { reason, message } } });
const ended = (terminated: object) =>
  container({ state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated } });
const runsSince = (seconds: number, ready = false) =>
  container({ ready, state: { running: { startedAt: at(-seconds) } } });

/** Returns the status of a pod whose node is silent: the node controller set Ready to false and left the rest. */
const silent = () => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: "False", lastTransitionTime: at(-600) }],
  containerStatuses: [{ name: "learner", image: "img", ready: true, state: { running: { startedAt: at(-3600) } } }],
});
const leavingOf = (seconds: number, status: object) => ({
  ...{ metadata: { name: "old", uid: "old", deletionTimestamp: at(seconds) }, spec: { nodeName: "n1" } as never },
  ...{ status },
});
const young = (status: object, seconds: number) => {
  const made = pod(status);
  made.learnerPod.metadata.creationTimestamp = at(seconds);
  return made;
};
const unboundStatus = {
  phase: "Pending",
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: UNBOUND }],
};
const unfoundStatus = {
  phase: "Pending",
  conditions: [
    {
      ...{ type: "PodScheduled", status: "False", reason: "Unschedulable" },
      message: '0/1 nodes are available: persistentvolumeclaim "quick-data" not found.',
    },
  ],
};
const MULTI_ATTACH = {
  reason: "FailedAttachVolume",
  note: 'Multi-Attach error for volume "pv-1" Volume is already used by pod(s) old',
};
const ATTACHING = { reason: "FailedAttachVolume", note: "AttachVolume.Attach failed: volume is being created" };

describe("learnerState", () => {
  const CASES: [
    what: string,
    observed: Partial<Observed>,
    reason: string,
    message: RegExp,
    facts?: Partial<LearnerFacts>,
  ][] = [
    ["it answers", { ...runsSince(5), link: linkOf({ phase: Phase.TRAINING }) }, "Connected", /answers/],
    ["nothing is there yet", {}, "LearnerStarting", /is being made/],
    [
      "a pod is wanted since now",
      { deployment: deploymentOf(1) },
      "LearnerStarting",
      /pod is being made/,
      { podlessSinceMs: NOW_MS - 5000 },
    ],
    [
      "nobody makes its pod",
      { deployment: deploymentOf(1) },
      "PodNotCreated",
      /kube-controller-manager/,
      { podlessSinceMs: NOW_MS - 25_000 },
    ],
    [
      "the one before is ending",
      { deployment: deploymentOf(1), leavingPod: { metadata: { name: "old", deletionTimestamp: at(10) } } as never },
      "LearnerStarting",
      /is ending/,
    ],
    [
      "the one before does not end",
      { deployment: deploymentOf(1), leavingPod: { metadata: { name: "old", deletionTimestamp: at(-61) } } as never },
      "PodNotCreated",
      /kubectl delete pod old --force/,
    ],
    [
      "its node does not answer",
      pod(silent()),
      "NodeLost",
      /^node n1 has not answered since 2025-12-31T23:50:00Z: Kubernetes deletes the learner's pod pod when/,
    ],
    [
      "its node reports that it is not ready",
      container({ state: { running: { startedAt: at(-50) } } }),
      "LearnerNotAnswering",
      /is not ready/,
    ],
    [
      "the node of the one before does not answer, which ends in time",
      { deployment: deploymentOf(1), leavingPod: leavingOf(-59, silent()) },
      "NodeLost",
      /^node n1 has not answered since .*: pod old is deleted, and its node has yet to confirm/,
    ],
    [
      "the node of the one before does not answer, and the volume stays there",
      { ...pod({ phase: "Pending" }), leavingPod: leavingOf(-60, silent()) },
      "NodeLost",
      /pod old cannot end and keeps the volume: if the node is gone for good, kubectl taint nodes n1 node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute.*kubectl delete pod old --force; spec\.learner\.storage\.forceDetach: true/,
      { warning: MULTI_ATTACH },
    ],
    [
      "the same, and the controller deletes it",
      {
        run: runOf({ learner: { storage: { forceDetach: true } } }),
        ...pod({ phase: "Pending" }),
        leavingPod: leavingOf(-60, silent()),
      },
      "NodeLost",
      /keeps the volume: it is deleted by force/,
    ],
    [
      "deleted by the taint of a lost node before its containers were ready",
      {
        deployment: deploymentOf(1),
        leavingPod: leavingOf(-60, {
          conditions: [{ type: "DisruptionTarget", status: "True", reason: "DeletionByTaintManager" }],
        }),
      },
      "NodeLost",
      /node n1/,
    ],
    [
      "the node of the one before is lost, and the next one runs",
      { ...runsSince(10), leavingPod: leavingOf(-60, silent()) },
      "LearnerStarting",
      /loads its weights/,
    ],
    [
      "the volume is still attached where the pod before ends",
      { ...pod({ phase: "Pending" }), leavingPod: leavingOf(20, { phase: "Running" }), volume: claimOf({}) },
      "LearnerStarting",
      /^the volume of claim quick-data is freed when pod old on node n1 has ended$/,
      { warning: MULTI_ATTACH },
    ],
    [
      "the pod before is gone, and its node lets the volume go",
      { ...young({ phase: "Pending" }, -60), volume: claimOf({}) },
      "LearnerStarting",
      /waits for its volumes to be attached and mounted \(Multi-Attach/,
      { warning: MULTI_ATTACH },
    ],
    [
      "the volume is still attached where the pod before does not end",
      { ...pod({ phase: "Pending" }), leavingPod: leavingOf(-61, { phase: "Running" }), volume: claimOf({}) },
      "VolumeAttachedElsewhere",
      /^the volume of claim quick-data is still attached to another node \(Multi-Attach error .*\): pod old on node n1 has it/,
      { warning: MULTI_ATTACH },
    ],
    [
      "the volume is still attached to a node of which nothing is known",
      { ...pod({ phase: "Pending" }), volume: claimOf({}) },
      "VolumeAttachedElsewhere",
      /after 6 minutes, or at once with kubectl taint nodes NODE/,
      { warning: MULTI_ATTACH },
    ],
    [
      "a quota",
      {
        deployment: {
          ...deploymentOf(1),
          status: { conditions: [{ type: "ReplicaFailure", status: "True", message: "exceeded quota: gpus" }] },
        } as never,
      },
      "QuotaExceeded",
      /exceeded quota: gpus.*raise the quota/,
    ],
    [
      "a policy",
      {
        deployment: {
          ...deploymentOf(1),
          status: { conditions: [{ type: "ReplicaFailure", status: "True", message: "violates PodSecurity" }] },
        } as never,
      },
      "PodNotCreated",
      /violates PodSecurity.*podTemplate/,
    ],
    [
      "no GPU",
      unscheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
      "Unschedulable",
      /nvidia\.com\/gpu.*node with a GPU/,
    ],
    [
      "no memory",
      unscheduled("Unschedulable", "3 Insufficient memory."),
      "Unschedulable",
      /ask for less in spec\.learner\.resources/,
    ],
    [
      "no claim",
      unscheduled("Unschedulable", 'persistentvolumeclaim "answers" not found'),
      "Unschedulable",
      /create the claim/,
    ],
    [
      "no default StorageClass",
      { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({}) },
      "Unschedulable",
      /: claim quick-data has no volume, and the cluster no default StorageClass: make one the default, or name one \(chart: runs\.storageClassName; in a new run: spec\.learner\.storage\.className\)$/,
    ],
    [
      "a StorageClass that makes no volume",
      { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({ storageClassName: "fast" }) },
      "Unschedulable",
      /: claim quick-data has no volume yet: check StorageClass fast and its driver, kubectl describe pvc quick-data says more$/,
    ],
    [
      "no volume on any node",
      {
        ...unscheduled("Unschedulable", "3 node(s) didn't find available persistent volumes to bind."),
        volume: claimOf({ storageClassName: "local" }),
      },
      "Unschedulable",
      /StorageClass local/,
    ],
    [
      "another claim without a volume",
      { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({ volumeName: "pv-1" }) },
      "Unschedulable",
      /: a claim that it mounts has no volume: kubectl describe pvc says why$/,
    ],
    ["a taint", unscheduled("Unschedulable", "3 node(s) had untolerated taint"), "Unschedulable", /tolerations/],
    ["a gate", unscheduled("SchedulingGated", "Scheduling is blocked"), "SchedulingGated", /gate/],
    [
      "no image",
      waiting("ImagePullBackOff", "not found"),
      "ImagePullFailed",
      /image img cannot be pulled \(not found\): check spec\.learner\.image/,
    ],
    [
      "no secret",
      waiting("CreateContainerConfigError", 'secret "token" not found'),
      "ContainerConfigError",
      /secret "token" not found/,
    ],
    ["killed for memory", ended({ exitCode: 137, reason: "OOMKilled" }), "LearnerOutOfMemory", /limits\.memory/],
    [
      "a crash",
      ended({ exitCode: 1, message: "the disk is full" }),
      "LearnerCrashing",
      /status 1 \(the disk is full\).*--previous/,
    ],
    [
      "killed for no reason that is known",
      ended({ exitCode: 137, reason: "Error", message: "iteration 3" }),
      "LearnerCrashing",
      /^the learner was killed by signal 9 and starts again/,
    ],
    [
      "killed for memory, and how often that may happen",
      ended({ exitCode: 137, reason: "OOMKilled" }),
      "LearnerOutOfMemory",
      /, failure 1 of the 20 that spec\.failurePolicy\.retries allows without a finished iteration: raise/,
    ],
    [
      "a full volume",
      { ...ended({ exitCode: 73, message: "the disk of /data/run is full" }), volume: claimOf({}) },
      "VolumeFull",
      /^volume quick-data \(100Gi\) is full: raise spec\.learner\.storage\.size/,
    ],
    [
      "a volume that is too small for the run's checkpoints",
      {
        ...ended({ exitCode: 73, message: "two do not fit; set learner.storage.size to 297Gi or more (keepLast 3)" }),
        volume: claimOf({}),
      },
      "VolumeFull",
      /^volume quick-data \(100Gi\) is too small: two do not fit; set learner\.storage\.size to 297Gi or more \(keepLast 3\), which needs a StorageClass/,
    ],
    [
      "a full volume that has been enlarged, and waits for its pod to end",
      {
        ...ended({ exitCode: 73 }),
        volume: {
          ...claimOf({ resources: { requests: { storage: "200Gi" } } }),
          status: { capacity: { storage: "100Gi" }, conditions: [{ type: "FileSystemResizePending", status: "True" }] },
        },
      },
      "VolumeFull",
      /^volume quick-data \(100Gi\) is full and grows when its pod is started anew: suspend the run/,
    ],
    [
      "a full volume, and the learner was just started again",
      container({ state: { running: { startedAt: at(-5) } }, lastState: { terminated: { exitCode: 73 } } }),
      "VolumeFull",
      /goes on by itself/,
    ],
    [
      "a volume that was full, and the learner loads",
      container({ state: { running: { startedAt: at(-50) } }, lastState: { terminated: { exitCode: 73 } } }),
      "LearnerNotAnswering",
      /not ready/,
    ],
    ["loading", runsSince(10), "LearnerStarting", /loads its weights/],
    ["loading for long", runsSince(50), "LearnerNotAnswering", /not ready.*learner\.startSeconds/],
    [
      "out of reach",
      { ...runsSince(50, true), link: { connected: false, sinceMs: NOW_MS, error: "timed out" } },
      "LearnerNotAnswering",
      /timed out.*port 7443/,
    ],
    [
      "on its way",
      pod({
        phase: "Pending",
        containerStatuses: [{ name: "learner", state: { waiting: { reason: "ContainerCreating" } } }],
      }),
      "LearnerStarting",
      /pod is starting/,
    ],
    [
      "a volume that cannot be mounted",
      pod({ phase: "Pending" }),
      "VolumeNotMounted",
      /secret "x" not found/,
      { warning: { reason: "FailedMount", note: 'MountVolume.SetUp failed: secret "x" not found' } },
    ],
    [
      "a volume that is being attached",
      young({ phase: "Pending" }, -60),
      "LearnerStarting",
      /waits for its volumes to be attached and mounted \(AttachVolume/,
      { warning: ATTACHING },
    ],
    [
      "a volume that is not attached after two minutes",
      young({ phase: "Pending" }, -121),
      "VolumeNotMounted",
      /\(AttachVolume.*: check its storage driver/,
      { warning: ATTACHING },
    ],
    [
      "what a new pod mounts does not exist",
      young({ phase: "Pending" }, -60),
      "VolumeNotMounted",
      /create what is missing/,
      { warning: { reason: "FailedMount", note: 'MountVolume.SetUp failed: secret "x" not found' } },
    ],
    [
      "a volume that is being made",
      { ...young(unboundStatus, -60), volume: claimOf({ storageClassName: "fast" }) },
      "LearnerStarting",
      /^the pod waits for the volume of claim quick-data, which StorageClass fast makes$/,
    ],
    [
      "the scheduler has not seen the run's claim yet",
      { ...young(unfoundStatus, -5), volume: claimOf({}) },
      "LearnerStarting",
      /^the pod waits for the volume of claim quick-data$/,
    ],
    ["a claim that the spec names is missing", young(unfoundStatus, -5), "Unschedulable", /create the claim/],
    [
      "a volume that nobody makes",
      { ...young(unboundStatus, -60), volume: claimOf({}) },
      "Unschedulable",
      /no default StorageClass/,
    ],
    [
      "resumed while the stopped learner still has its pod",
      pod({ phase: "Running" }),
      "Stopped",
      /^the run resumes when the stopped learner's pod pod has been told to end; if that takes long, check that kube-controller-manager runs$/,
      { lifecycle: { stage: "Suspended", learnerReplicas: 0 } },
    ],
    [
      "suspended while the learner still has its pod",
      { ...pod({ phase: "Running" }), run: runOf({ suspend: true }) },
      "Stopped",
      /^the run is suspended: the learner's pod pod ends$/,
      { lifecycle: { stage: "Suspended", learnerReplicas: 0 } },
    ],
    ["suspended", {}, "Stopped", /suspended/, { lifecycle: { stage: "Suspended", learnerReplicas: 0 } }],
    ["over", {}, "Stopped", /over/, { lifecycle: { stage: "Ended", learnerReplicas: 0 } }],
    [
      "at its end, the stream closed",
      { ...runsSince(50, true), link: { connected: false, sinceMs: NOW_MS } },
      "Stopped",
      /over/,
      { lifecycle: { stage: "Ending", learnerReplicas: 1 } },
    ],
    [
      "a copy that failed",
      {
        init: {
          metadata: { name: "quick-init" },
          status: { conditions: [{ type: "Failed", status: "True" }] },
        } as never,
        run: runOf({ initFrom: { run: "other" } }),
      },
      "InitFromFailed",
      /run other.*logs job\/quick-init/,
      { lifecycle: { stage: "Initialising", learnerReplicas: 0 } },
    ],
    ...(
      [
        [
          "is under way",
          "",
          undefined,
          "FetchingModel",
          /^model a\/b at main .* kubectl logs -f job\/quick-model shows how far it is$/,
        ],
        [
          "goes on after a try that failed",
          "",
          1,
          "FetchingModel",
          /shows how far it is; the last try failed: cannot reach hub$/,
        ],
        [
          "failed",
          "Failed",
          2,
          "ModelFetchFailed",
          /^model a\/b at main .* could not be fetched: cannot reach hub\. Mend that .* kubectl delete job quick-model/,
        ],
      ] as const
    ).map(([what, condition, exitCode, reason, message]): (typeof CASES)[number] => [
      `a fetch that ${what}`,
      {
        run: runOf({ model: { source: { huggingFace: { repo: "a/b" } } } }),
        model: { metadata: {}, status: { conditions: [{ type: condition, status: "True" }] } } as never,
        modelPod: {
          metadata: { creationTimestamp: at(-5) },
          status: {
            phase: "Failed",
            containerStatuses: [
              exitCode === undefined
                ? { name: "fetch", state: { running: {} } }
                : {
                    name: "fetch",
                    state: { terminated: { exitCode, message: "acme: 1 MB of 2\ncannot reach hub\n" } },
                  },
            ],
          },
        } as never,
      },
      reason,
      message,
      { lifecycle: { stage: "Initialising", learnerReplicas: 0 } },
    ]),
    ["what the API server refused", {}, "Forbidden", /no/, { refused: { reason: "Forbidden", message: "no" } }],
  ];
  for (const [what, change, reason, message, facts] of CASES)
    test(`${what}: ${reason}`, () => {
      const lifecycle = { stage: "Running" as Stage, learnerReplicas: 1 as const };
      const state = learnerState({
        observed: observedOf(RUN, change),
        lifecycle,
        refused: undefined,
        warning: undefined,
        podlessSinceMs: undefined,
        nowMs: NOW_MS,
        ...facts,
      });
      assert.equal(state.reason, reason);
      assert.match(state.message, message);
      assert.equal(state.available, reason === "Connected");
      assert.doesNotMatch(state.message, /\n/);
    });
});

describe("writeBlocker", () => {
  const CASES: [status: number, message: string, reason: string | undefined][] = [
    [403, 'pods "x" is forbidden: exceeded quota: few, requested: count/jobs.batch=1', "QuotaExceeded"],
    [403, "unable to create new content in namespace team because it is being terminated", "Forbidden"],
    [403, 'User "x" cannot create resource "jobs"', "Forbidden"],
    [422, "spec.template: Invalid value", "Refused"],
    [400, 'admission webhook "policy" denied the request', "Refused"],
    [409, "the object has been modified", undefined],
    [429, "slow down", undefined],
    [500, "etcd", undefined],
    [
      500,
      'failed to create typed patch object (team-1/d; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: expected list, got &{x}',
      "Refused",
    ],
    [0, "socket hang up", undefined],
  ];
  for (const [status, message, reason] of CASES)
    test(`${status} ${message}: ${reason ?? "try again"}`, () => {
      const error = new ApiError(message, { status, reason: status === 409 ? "Conflict" : "" });
      assert.equal(writeBlocker(error, RUN)?.reason, reason);
    });
});
