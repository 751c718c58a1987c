/**
 * Computes digests of the fields by which the user shapes a run's pods. The digests leave out everything that the controller adds:
 * images, defaults, arguments and probes. Two versions of the controller therefore compute the same digests for one run, and an
 * upgrade alone changes none.
 */
import { asWritten, learnersSpec } from "./config-map.ts";
import { digestOf, type Run } from "./names.ts";

export interface Inputs {
  learner: string;
  actor: string;
  /** Digest of the fields that determine on which nodes generators fit; absent without generators. */
  generator?: string;
}

/** Fields of `spec.learner` that the pod has and the learner does not read. */
const LEARNER_FIELDS = [
  ...["image", "imagePullPolicy", "resources", "sharedMemory", "podTemplate", "startSeconds", "stopGraceSeconds"],
];
const ACTOR_FIELDS = [
  ...["image", "sandboxImage", "imagePullPolicy", "runtimeClassName", "resources", "sandboxResources", "podTemplate"],
  ...["slots", "packages", "isolation", "requireIsolation", "stopGraceSeconds", "evictionGraceSeconds"],
];
const GENERATOR_FIELDS = ["engine", "resources", "podTemplate"];
/** Fields of the spec that concern all pods. */
const POD_FIELDS = ["env", "caBundle", "inheritedMetadata", "runtimeRef"];
const TASK_FIELDS = ["name", "publicData", "executionMemoryBytes", "scratchBytes", "executionTimeoutSeconds"];

/**
 * @param run as its user wrote it, without the defaults of its runtime
 * @param choices nodes that Kueue chose, see flavors.ts
 */
export function inputsOf(run: Run, choices: unknown = {}): Inputs {
  const { learner = {}, actors = {}, tasks = [], generation, warmStart } = asWritten(run.spec);
  const volumes = tasks.map((task) => pick(task, ["publicData", "privateData"]));
  // an earlier controller's digests have no such parts
  const warmData = warmStart ? [warmStart.data] : [];
  const pods = pick(asWritten(run.spec), POD_FIELDS);
  const given = Object.keys(pods).length > 0 ? [pods] : [];
  return {
    learner: digestOf([learnersSpec(run.spec), pick(learner, LEARNER_FIELDS), volumes, choices, ...warmData, ...given]),
    actor: digestOf([pick(actors, ACTOR_FIELDS), tasks.map((task) => pick(task, TASK_FIELDS)), choices, ...given]),
    ...(generation && { generator: digestOf(pick(generation, GENERATOR_FIELDS)) }),
  };
}

function pick(object: object, fields: string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([field]) => fields.includes(field)));
}
