import { describe } from "node:test";
import { messages } from "../../../../proto/service.ts";
import { at, deploymentOf, linkOf, NOW_MS, runOf } from "../../run.fixture.ts";
import {
  container,
  ended,
  leavingOf,
  MULTI_ATTACH,
  pod,
  runsSince,
  type StateCase,
  silent,
  testStates,
  unscheduled,
  waiting,
} from "./learner-state.fixture.ts";

const { Phase } = messages;

const CASES: StateCase[] = [
  ["the learner answers", { ...runsSince(5), link: linkOf({ phase: Phase.TRAINING }) }, "Connected", /answers/],
  ["no object exists yet", {}, "LearnerStarting", /is being created/],
  [
    "the pod is being created",
    { deployment: deploymentOf(1) },
    "LearnerStarting",
    /pod is being created/,
    { podlessSinceMs: NOW_MS - 5000 },
  ],
  [
    "nobody makes the pod",
    { deployment: deploymentOf(1) },
    "PodNotCreated",
    /kube-controller-manager/,
    { podlessSinceMs: NOW_MS - 25_000 },
  ],
  [
    "the previous pod is ending",
    { deployment: deploymentOf(1), leavingPod: { metadata: { name: "old", deletionTimestamp: at(10) } } as never },
    "LearnerStarting",
    /is ending/,
  ],
  [
    "the previous pod does not end",
    { deployment: deploymentOf(1), leavingPod: { metadata: { name: "old", deletionTimestamp: at(-61) } } as never },
    "PodNotCreated",
    /kubectl delete pod old --force/,
  ],
  [
    "the pod's node does not answer",
    pod(silent()),
    "NodeLost",
    /^node n1 has not answered since 2025-12-31T23:50:00Z: Kubernetes deletes the learner's pod pod when/,
  ],
  [
    "the pod's node reports that the pod is not ready",
    container({ state: { running: { startedAt: at(-50) } } }),
    "LearnerNotAnswering",
    /is not ready/,
  ],
  [
    "the previous pod's node does not answer and the pod may still end in time",
    { deployment: deploymentOf(1), leavingPod: leavingOf(-59, silent()) },
    "NodeLost",
    /^node n1 has not answered since .*: pod old is being deleted, and its node must confirm/,
  ],
  [
    "the previous pod's node does not answer and keeps the volume",
    { ...pod({ phase: "Pending" }), leavingPod: leavingOf(-60, silent()) },
    "NodeLost",
    /pod old cannot end and keeps the volume: if the node is gone for good, kubectl taint nodes n1 node\.kubernetes\.io\/out-of-service=nodeshutdown:NoExecute.*kubectl delete pod old --force; with spec\.learner\.storage\.forceDetach: true/,
    { warning: MULTI_ATTACH },
  ],
  [
    "the previous pod's node keeps the volume and the controller deletes the pod by force",
    {
      run: runOf({ learner: { storage: { forceDetach: true } } }),
      ...pod({ phase: "Pending" }),
      leavingPod: leavingOf(-60, silent()),
    },
    "NodeLost",
    /keeps the volume: it is deleted by force/,
  ],
  [
    "the taint of a lost node deleted the pod before its containers were ready",
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
    "the previous pod's node is lost and the next pod runs",
    { ...runsSince(10), leavingPod: leavingOf(-60, silent()) },
    "LearnerStarting",
    /loads its weights/,
  ],
  [
    "a quota forbids the pod",
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
    "a policy forbids the pod",
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
    "no node has a free GPU",
    unscheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    "Unschedulable",
    /nvidia\.com\/gpu.*node with a GPU/,
  ],
  [
    "no node has enough memory",
    unscheduled("Unschedulable", "3 Insufficient memory."),
    "Unschedulable",
    /request less in spec\.learner\.resources/,
  ],
  [
    "a claim that the pod mounts does not exist",
    unscheduled("Unschedulable", 'persistentvolumeclaim "answers" not found'),
    "Unschedulable",
    /create the claim/,
  ],
  [
    "the pod does not tolerate a taint",
    unscheduled("Unschedulable", "3 node(s) had untolerated taint"),
    "Unschedulable",
    /tolerations/,
  ],
  [
    "a scheduling gate holds the pod",
    unscheduled("SchedulingGated", "Scheduling is blocked"),
    "SchedulingGated",
    /gate/,
  ],
  [
    "the image does not exist",
    waiting("ImagePullBackOff", "not found"),
    "ImagePullFailed",
    /image img cannot be pulled \(not found\): check spec\.learner\.image/,
  ],
  [
    "a Secret of the container does not exist",
    waiting("CreateContainerConfigError", 'secret "token" not found'),
    "ContainerConfigError",
    /secret "token" not found/,
  ],
  ...(["learner", "fetch", "push"] as const).map(
    (name, index): StateCase => [
      `a Secret of container ${name} does not exist`,
      waiting("CreateContainerConfigError", 'secret "token" not found', name),
      "ContainerConfigError",
      [/that spec\.learner\.podTemplate names/, /that spec\.model\.source names/, /that spec\.results\.s3 names/][
        index
      ]!,
    ],
  ),
  [
    "the learner was killed for memory",
    ended({ exitCode: 137, reason: "OOMKilled" }),
    "LearnerOutOfMemory",
    /limits\.memory/,
  ],
  [
    "the learner crashes",
    ended({ exitCode: 1, message: "the disk is full" }),
    "LearnerCrashing",
    /status 1 \(the disk is full\).*--previous/,
  ],
  [
    "the learner was killed for an unknown reason",
    ended({ exitCode: 137, reason: "Error", message: "iteration 3" }),
    "LearnerCrashing",
    /^the learner was killed by signal 9 and starts again/,
  ],
  [
    "the learner was killed for memory and the message says how often that may happen",
    ended({ exitCode: 137, reason: "OOMKilled" }),
    "LearnerOutOfMemory",
    /, failure 1 of the 20 that spec\.failurePolicy\.retries allows without a finished iteration: raise/,
  ],
  ["the learner is loading", runsSince(10), "LearnerStarting", /loads its weights/],
  ["the learner has been loading for long", runsSince(50), "LearnerNotAnswering", /not ready.*learner\.startSeconds/],
  [
    "the controller cannot reach the learner",
    { ...runsSince(50, true), link: { connected: false, sinceMs: NOW_MS, error: "timed out" } },
    "LearnerNotAnswering",
    /timed out.*port 7443/,
  ],
  [
    "the controller cannot resolve the learner's name",
    {
      ...runsSince(50, true),
      link: {
        connected: false,
        sinceMs: NOW_MS,
        error: "Name resolution failed for target dns:quick-learner.team.svc",
      },
    },
    "NamesNotResolved",
    /cannot be reached \(Name resolution failed.*its names do not resolve: .*chart: networkPolicy\.dns/,
  ],
  [
    "the learner resolves no name",
    ended({ exitCode: 74, message: "getaddrinfo EAI_AGAIN quick-generators.team.svc" }),
    "NamesNotResolved",
    /ended with status 74 \(getaddrinfo EAI_AGAIN.*networkPolicy\.dns/,
  ],
  [
    "the container is being created",
    pod({
      phase: "Pending",
      containerStatuses: [{ name: "learner", state: { waiting: { reason: "ContainerCreating" } } }],
    }),
    "LearnerStarting",
    /pod is starting/,
  ],
  [
    "the run is resumed and the stopped learner still has its pod",
    pod({ phase: "Running" }),
    "Stopped",
    /^the run resumes when the deletion of the stopped learner's pod pod has begun; if this takes long, check that kube-controller-manager runs$/,
    { lifecycle: { stage: "Suspended", learnerReplicas: 0 } },
  ],
  [
    "the run is suspended and the learner still has its pod",
    { ...pod({ phase: "Running" }), run: runOf({ suspend: true }) },
    "Stopped",
    /^the run is suspended: the learner's pod pod ends$/,
    { lifecycle: { stage: "Suspended", learnerReplicas: 0 } },
  ],
  ["the run is suspended", {}, "Stopped", /suspended/, { lifecycle: { stage: "Suspended", learnerReplicas: 0 } }],
  ["the run is over", {}, "Stopped", /over/, { lifecycle: { stage: "Ended", learnerReplicas: 0 } }],
  [
    "the run is ending and the learner has closed its stream",
    { ...runsSince(50, true), link: { connected: false, sinceMs: NOW_MS } },
    "Stopped",
    /over/,
    { lifecycle: { stage: "Ending", learnerReplicas: 1 } },
  ],
  [
    "the copy of the checkpoint failed",
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
        /^model a\/b at main .* kubectl logs -f job\/quick-model shows the progress$/,
      ],
      [
        "goes on after a try that failed",
        "",
        1,
        "FetchingModel",
        /shows the progress; the last try failed: cannot reach hub$/,
      ],
      [
        "failed",
        "Failed",
        2,
        "ModelFetchFailed",
        /^model a\/b at main .* could not be fetched: cannot reach hub\. Remove the cause .* kubectl delete job quick-model/,
      ],
    ] as const
  ).map(
    ([what, condition, exitCode, reason, message]): StateCase => [
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
    ],
  ),
  ["the API server refused a write", {}, "Forbidden", /no/, { refused: { reason: "Forbidden", message: "no" } }],
];

describe("learnerState", () => testStates(CASES));
