/**
 * Fields of a TrainingRun's spec for which a TrainingRuntime has defaults. Its schema, its types, the merge and the documentation follow
 * from this table.
 */
import type { Actors, Generation, Learner, Storage, TrainingRunSpec } from "./trainingrun.generated.ts";

/** By the path of the object below `spec`. */
export const RUNTIME_FIELDS = {
  "": ["queueName", "inheritedMetadata", "env", "caBundle", "results"],
  learner: ["image", "imagePullPolicy", "device", "resources", "sharedMemory", "disruption", "podTemplate"],
  "learner.storage": ["size", "className", "retain", "retainSeconds", "forceDetach"],
  actors: [
    ...(["min", "max", "slots", "autoscaling", "image", "sandboxImage", "imagePullPolicy", "packages"] as const),
    ...(["isolation", "requireIsolation", "runtimeClassName", "resources", "sandboxResources", "podTemplate"] as const),
  ],
  generation: ["image", "imagePullPolicy", "resources", "sharedMemory", "podTemplate"],
} as const;

type Fields = typeof RUNTIME_FIELDS;
type Some<Whole, Name extends keyof Fields> = Partial<Pick<Whole, Fields[Name][number] & keyof Whole>>;

export interface RuntimeLimits {
  gpus?: number;
  actors?: number;
  storageClassNames?: string[];
  priorityClassNames?: string[];
  runtimeClassNames?: string[];
  images?: string[];
}

/** The spec of a TrainingRuntime: every field may be absent. */
export interface RuntimeSpec extends Some<TrainingRunSpec, ""> {
  learner?: Some<Learner, "learner"> & { storage?: Some<Storage, "learner.storage"> };
  actors?: Some<Actors, "actors">;
  generation?: Some<Generation, "generation">;
  limits?: RuntimeLimits;
}

export interface TrainingRuntime {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; uid?: string; generation?: number };
  spec: RuntimeSpec;
}
