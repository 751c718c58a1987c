/** `NAME-config`: the run as the learner reads it. */
import { stringify } from "yaml";
import { withoutRemovedFields } from "../../../crds/removed.ts";
import { readSchema, withoutDefaults } from "../../../crds/schema.ts";
import type { Model, Task, TrainingRunSpec } from "../../../crds/trainingrun.ts";
import type { ConfigMap } from "../kube/resources.ts";
import { childMetadata, type Run } from "./names.ts";
import { CUSTOM_TASKS } from "./pod.ts";

export const MANIFEST = "trainingrun.yaml";
export const TASK = "task.yaml";
/** Mount path of `model.volume` in the learner. */
export const MODEL = "/model";
/** Folder on the run's volume into which the Job `NAME-model` fetches `model.source`. */
export const FETCHED_MODEL = "/data/model";
/** Mount path of `warmStart.data` in the learner. */
export const WARM_START = "/warm-start";
/** Folder on the run's volume into which the Job `NAME-init` copies another run's checkpoint. */
export const INIT_CHECKPOINT = "/data/init";

/**
 * Fields of the spec that only the controller reads. A change of such a field never restarts a learner. The learner's manifest
 * leaves them out, so the learner fills in their defaults and ignores them.
 */
const CONTROLLERS_OWN: Record<string, readonly string[]> = {
  learner: [
    ...["image", "imagePullPolicy", "resources", "podTemplate", "storage", "startSeconds", "stopGraceSeconds"],
    ...["disruption", "sharedMemory"],
  ],
  generation: [
    ...["engine", "replicas", "image", "imagePullPolicy", "resources", "sharedMemory", "podTemplate"],
    ...["scaleDownSeconds", "startSeconds", "drainSeconds"],
  ],
  actors: [
    ...["min", "max", "replicas", "autoscaling", "scaleDownSeconds", "maxStarting", "drainSeconds", "stopGraceSeconds"],
    "evictionGraceSeconds",
    ...["image", "sandboxImage", "imagePullPolicy", "runtimeClassName", "resources", "sandboxResources", "podTemplate"],
  ],
};

const SPEC_SCHEMA = readSchema().properties!.spec!;

/** Returns the spec as its user wrote it, without the defaults that the API server has filled in, including those of removed fields. */
export function asWritten(spec: TrainingRunSpec): Partial<TrainingRunSpec> {
  return withoutDefaults(withoutRemovedFields({ spec }).spec, SPEC_SCHEMA) as Partial<TrainingRunSpec>;
}

/** Leaves out fields that have their default, because a learner of an earlier version would refuse unknown fields. */
export function desiredConfigMap(run: Run): ConfigMap {
  const { apiVersion, kind, metadata } = run;
  const manifest = { apiVersion, kind, metadata: { name: metadata.name }, spec: learnersSpec(run.spec) };
  const custom = (manifest.spec.tasks ?? []).filter(isCustom);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: childMetadata(run, "config", "learner"),
    data: {
      [MANIFEST]: yaml(manifest),
      ...Object.fromEntries(custom.map((task) => [taskFile(run.spec, task), yaml(task)])),
    },
  };
}

/** Whether a task is a custom task, with its own data and grader. */
export function isCustom(task: Task): boolean {
  return task.publicData !== undefined;
}

/** Returns the key of a custom task's `task.yaml`. A run with one task has the key `task.yaml`, as earlier versions wrote it. */
export function taskFile({ tasks }: Pick<TrainingRunSpec, "tasks">, { name }: Task): string {
  return tasks.filter(isCustom).length > 1 ? `task-${name}.yaml` : TASK;
}

/** Returns the name of the volume with a custom task's data. A run with one task has the name that earlier versions wrote. */
export function dataName(
  { tasks }: Pick<TrainingRunSpec, "tasks">,
  { name }: Task,
  part: "public" | "private",
): string {
  const custom = tasks.filter(isCustom);
  const index = custom.findIndex((task) => task.name === name);
  return custom.length > 1 ? `${part}-data-${index}` : `${part}-data`;
}

export function taskFolder({ name }: Task): string {
  return `${CUSTOM_TASKS}/${name}`;
}

/** Returns the part of the spec that the learner reads. */
export function learnersSpec(spec: TrainingRunSpec): Partial<TrainingRunSpec> {
  const {
    suspend: _,
    ttlSecondsAfterFinished: __,
    queueName: ___,
    managedBy: ____,
    controllerClass: ____________,
    inheritedMetadata: ___________,
    results: ________,
    env: _________,
    caBundle: __________,
    runtimeRef: ___________________,
    ...others
  } = spec;
  // A webhook's address may be a secret, and the report shows the learner's manifest.
  const { notifications: _____, failurePolicy: ______, upgradePolicy: _______, initFrom, warmStart, ...rest } = others;
  const own = Object.fromEntries(
    Object.entries(CONTROLLERS_OWN).flatMap(([part, fields]) => {
      const value = rest[part as keyof typeof rest];
      if (value === undefined) return [];
      return [[part, Object.fromEntries(Object.entries(value).filter(([field]) => !fields.includes(field)))]];
    }),
  );
  return asWritten({
    ...rest,
    ...own,
    // The rule about the image needs actors.sandboxImage, which only the controller knows.
    tasks: spec.tasks.map(({ sandboxImage: _, ...task }) => (isCustom(task) ? localTask(task) : task)),
    model: localModel(spec.model),
    ...(warmStart && { warmStart: { ...warmStart, data: { path: WARM_START } } }),
    ...(initFrom &&
      initFrom.volume === undefined && { initFrom: initFrom.run === undefined ? initFrom : { path: INIT_CHECKPOINT } }),
  } as TrainingRunSpec);
}

/** Returns the model with the folder into which it is fetched. A change of the source's address or credentials never restarts a learner. */
function localModel({ source, ...model }: Model): Model {
  return source === undefined ? model : { ...model, policy: FETCHED_MODEL };
}

/** Returns the task with the paths at which the learner's pod mounts its data. */
function localTask(task: Task): Task {
  const prepared = `${taskFolder(task)}/prepared`;
  return { ...task, publicData: { path: `${prepared}/public` }, privateData: { path: `${prepared}/private` } };
}

/** Returns the same text for the same content, whatever the order of the keys. */
function yaml(value: unknown): string {
  return stringify(value, { sortMapEntries: true, aliasDuplicateObjects: false });
}
