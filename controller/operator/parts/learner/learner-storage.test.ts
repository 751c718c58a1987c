import { describe } from "node:test";
import { at } from "../../run.fixture.ts";
import {
  ATTACHING,
  claimOf,
  container,
  ended,
  leavingOf,
  MULTI_ATTACH,
  pod,
  type StateCase,
  testStates,
  UNBOUND,
  unboundStatus,
  unfoundStatus,
  unscheduled,
  young,
} from "./learner-state.fixture.ts";

const CASES: StateCase[] = [
  [
    "the previous pod is ending and the volume is still attached to its node",
    { ...pod({ phase: "Pending" }), leavingPod: leavingOf(20, { phase: "Running" }), volume: claimOf({}) },
    "LearnerStarting",
    /^the volume of claim quick-data is freed when pod old on node n1 has ended$/,
    { warning: MULTI_ATTACH },
  ],
  [
    "the previous pod is gone and its node detaches the volume",
    { ...young({ phase: "Pending" }, -60), volume: claimOf({}) },
    "LearnerStarting",
    /waits for its volumes to be attached and mounted \(Multi-Attach/,
    { warning: MULTI_ATTACH },
  ],
  [
    "the previous pod does not end and the volume is still attached to its node",
    { ...pod({ phase: "Pending" }), leavingPod: leavingOf(-61, { phase: "Running" }), volume: claimOf({}) },
    "VolumeAttachedElsewhere",
    /^the volume of claim quick-data is still attached to another node \(Multi-Attach error .*\): pod old on node n1 has it/,
    { warning: MULTI_ATTACH },
  ],
  [
    "the volume is still attached to an unknown node",
    { ...pod({ phase: "Pending" }), volume: claimOf({}) },
    "VolumeAttachedElsewhere",
    /after 6 minutes, or at once with kubectl taint nodes NODE/,
    { warning: MULTI_ATTACH },
  ],
  [
    "the cluster has no default StorageClass",
    { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({}) },
    "Unschedulable",
    /: claim quick-data has no volume, and the cluster no default StorageClass: make one the default, or name one \(chart: runs\.storageClassName; in a new run: spec\.learner\.storage\.className\)$/,
  ],
  [
    "the StorageClass makes no volume",
    { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({ storageClassName: "fast" }) },
    "Unschedulable",
    /: claim quick-data has no volume yet: check StorageClass fast and its driver, kubectl describe pvc quick-data says more$/,
  ],
  [
    "no node has a volume for the claim",
    {
      ...unscheduled("Unschedulable", "3 node(s) didn't find available persistent volumes to bind."),
      volume: claimOf({ storageClassName: "local" }),
    },
    "Unschedulable",
    /StorageClass local/,
  ],
  [
    "another claim has no volume",
    { ...unscheduled("Unschedulable", UNBOUND), volume: claimOf({ volumeName: "pv-1" }) },
    "Unschedulable",
    /: a claim that it mounts has no volume: kubectl describe pvc shows the reason$/,
  ],
  [
    "the volume is full",
    { ...ended({ exitCode: 73, message: "the disk of /data/run is full" }), volume: claimOf({}) },
    "VolumeFull",
    /^volume quick-data \(100Gi\) is full: raise spec\.learner\.storage\.size/,
  ],
  [
    "the volume is too small for the run's checkpoints",
    {
      ...ended({ exitCode: 73, message: "two do not fit; set learner.storage.size to 297Gi or more (keepLast 3)" }),
      volume: claimOf({}),
    },
    "VolumeFull",
    /^volume quick-data \(100Gi\) is too small: two do not fit; set learner\.storage\.size to 297Gi or more \(keepLast 3\), which needs a StorageClass/,
  ],
  [
    "the full volume was enlarged and waits for its pod to end",
    {
      ...ended({ exitCode: 73 }),
      volume: {
        ...claimOf({ resources: { requests: { storage: "200Gi" } } }),
        status: { capacity: { storage: "100Gi" }, conditions: [{ type: "FileSystemResizePending", status: "True" }] },
      },
    },
    "VolumeFull",
    /^volume quick-data \(100Gi\) is full and grows when its pod is restarted: suspend the run/,
  ],
  [
    "the volume was full and the learner has just started again",
    container({ state: { running: { startedAt: at(-5) } }, lastState: { terminated: { exitCode: 73 } } }),
    "VolumeFull",
    /continues within 5 minutes/,
  ],
  [
    "the volume was full and the learner loads",
    container({ state: { running: { startedAt: at(-50) } }, lastState: { terminated: { exitCode: 73 } } }),
    "LearnerNotAnswering",
    /not ready/,
  ],
  [
    "a volume cannot be mounted",
    pod({ phase: "Pending" }),
    "VolumeNotMounted",
    /secret "x" not found/,
    { warning: { reason: "FailedMount", note: 'MountVolume.SetUp failed: secret "x" not found' } },
  ],
  [
    "a volume is being attached",
    young({ phase: "Pending" }, -60),
    "LearnerStarting",
    /waits for its volumes to be attached and mounted \(AttachVolume/,
    { warning: ATTACHING },
  ],
  [
    "a volume is not attached after two minutes",
    young({ phase: "Pending" }, -121),
    "VolumeNotMounted",
    /\(AttachVolume.*: check its storage driver/,
    { warning: ATTACHING },
  ],
  [
    "a new pod mounts a Secret that does not exist",
    young({ phase: "Pending" }, -60),
    "VolumeNotMounted",
    /create the missing object/,
    { warning: { reason: "FailedMount", note: 'MountVolume.SetUp failed: secret "x" not found' } },
  ],
  [
    "the volume is being made",
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
    "nobody makes the volume",
    { ...young(unboundStatus, -60), volume: claimOf({}) },
    "Unschedulable",
    /no default StorageClass/,
  ],
];

describe("the state of a learner's storage", () => testStates(CASES));
