/** What the limits of a TrainingRuntime forbid. */
import { gpuCount } from "./gpu.ts";
import type { RuntimeLimits } from "./runtime-fields.ts";
import type { PodTemplate, Resources, TrainingRun } from "./trainingrun.ts";

type AnyRun = Pick<TrainingRun, "spec">;

/** Names of resources that are devices of a DeviceClass, claimed like an extended resource. Such a device may be a GPU or not. */
const DEVICE_CLASS = /^deviceclass\.resource\.kubernetes\.io\//;

/** A value of a run that a limit concerns, with the path of its field. */
type Named = [field: string, value: string | undefined];

/**
 * Returns what a run takes beyond the limits. Names of classes and images count if its author gave them, numbers with the runtime's
 * defaults.
 *
 * @returns one sentence a problem, which names field and value
 */
export function limitProblems(run: AnyRun, merged: AnyRun, limits: RuntimeLimits): string[] {
  return [
    ...numberProblems(run, merged, limits),
    ...notIn(storageClasses(run), limits.storageClassNames, "storageClassNames"),
    ...notIn(priorityClasses(run), limits.priorityClassNames, "priorityClassNames"),
    ...notIn(runtimeClasses(run), limits.runtimeClassNames, "runtimeClassNames"),
    ...notIn(imagesOf(run), limits.images, "images"),
  ];
}

/** GPUs that a run takes at most, by the field that says so. */
function gpusOf({ spec: { learner, generation, actors } }: AnyRun): [field: string, gpus: number][] {
  const most = Math.max(actors.max, actors.replicas ?? 0);
  return [
    ["spec.learner.resources.limits", gpuCount(learner.resources)],
    [
      "spec.generation (resources.limits times replicas.max)",
      generation ? gpuCount(generation.resources) * generation.replicas.max : 0,
    ],
    ["spec.actors (resources.limits times max)", gpuCount(actors.resources) * most],
    [
      "spec.actors (sandboxResources.limits times slots and max)",
      gpuCount(actors.sandboxResources) * actors.slots * most,
    ],
  ];
}

function numberProblems(run: AnyRun, merged: AnyRun, limits: RuntimeLimits): string[] {
  const problems: string[] = [];
  if (limits.gpus !== undefined) {
    const takers = gpusOf(merged).filter(([, gpus]) => gpus > 0);
    const all = takers.reduce((sum, [, gpus]) => sum + gpus, 0);
    if (all > limits.gpus)
      problems.push(
        `${takers.map(([field]) => field).join(" and ")}: the run takes ${all} GPUs; limits.gpus is ${limits.gpus}`,
      );
    for (const [at, template] of templatesOf(run)) {
      const claims = (template?.spec as { resourceClaims?: { name: string }[] } | undefined)?.resourceClaims ?? [];
      if (claims.length > 0)
        problems.push(
          `${at}.resourceClaims has ${claims.map(({ name }) => name).join(", ")}; limits.gpus cannot count what a run's own claims hold: use claims of the runtime, or resources.limits`,
        );
    }
    for (const [at, resources] of resourcesOf(run)) {
      const classes = Object.keys(resources?.limits ?? {}).filter((name) => DEVICE_CLASS.test(name));
      if (classes.length > 0)
        problems.push(
          `${at}.limits has ${classes.join(", ")}; limits.gpus cannot count what a DeviceClass gives: use claims of the runtime, or a resource such as nvidia.com/gpu`,
        );
    }
  }
  const { actors } = merged.spec;
  for (const field of ["max", "replicas"] as const) {
    const value = actors[field];
    if (limits.actors !== undefined && value !== undefined && value > limits.actors)
      problems.push(`spec.actors.${field} is ${value}; limits.actors is ${limits.actors}`);
  }
  return problems;
}

function notIn(found: Named[], allowed: readonly string[] | undefined, limit: keyof RuntimeLimits): string[] {
  if (allowed === undefined) return [];
  return found.flatMap(([field, value]) =>
    value === undefined || allowed.some((pattern) => matches(pattern, value, limit === "images"))
      ? []
      : [`${field} is ${value}; limits.${limit} allows ${allowed.join(", ") || "none"}`],
  );
}

/** Whether a name is the pattern, in which `*` stands for any text if it has wildcards. */
export function matches(pattern: string, text: string, hasWildcards = true): boolean {
  if (!hasWildcards) return pattern === text;
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return text === pattern;
  const last = rest.pop()!;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

const templatesOf = ({ spec }: AnyRun): [at: string, template: PodTemplate | undefined][] => [
  ["spec.learner.podTemplate.spec", spec.learner.podTemplate],
  ["spec.actors.podTemplate.spec", spec.actors.podTemplate],
  ["spec.generation.podTemplate.spec", spec.generation?.podTemplate],
];

const resourcesOf = ({ spec }: AnyRun): [at: string, resources: Resources | undefined][] => [
  ["spec.learner.resources", spec.learner.resources],
  ["spec.actors.resources", spec.actors.resources],
  ["spec.actors.sandboxResources", spec.actors.sandboxResources],
  ["spec.generation.resources", spec.generation?.resources],
];

const storageClasses = ({ spec }: AnyRun): Named[] => [
  ["spec.learner.storage.className", spec.learner.storage.className],
];

const priorityClasses = (run: AnyRun): Named[] =>
  templatesOf(run).map(([at, template]) => [`${at}.priorityClassName`, template?.spec?.priorityClassName]);

const runtimeClasses = (run: AnyRun): Named[] => [
  ["spec.actors.runtimeClassName", run.spec.actors.runtimeClassName],
  ...templatesOf(run).map(([at, template]): Named => {
    const name = (template?.spec as { runtimeClassName?: string } | undefined)?.runtimeClassName;
    return [`${at}.runtimeClassName`, name];
  }),
];

function imagesOf(run: AnyRun): Named[] {
  const { learner, actors, generation, tasks, model, warmStart } = run.spec;
  type Volumes = { name?: string; image?: { reference?: string } }[];
  return [
    ["spec.learner.image", learner.image],
    ["spec.actors.image", actors.image],
    ["spec.actors.sandboxImage", actors.sandboxImage],
    ["spec.generation.image", generation?.image],
    ["spec.model.volume.image.reference", model.volume?.image?.reference],
    ["spec.warmStart.data.image.reference", warmStart?.data.image?.reference],
    ...tasks.flatMap((task, index): Named[] => [
      [`spec.tasks[${index}].publicData.image.reference`, task.publicData?.image?.reference],
      [`spec.tasks[${index}].privateData.image.reference`, task.privateData?.image?.reference],
    ]),
    ...templatesOf(run).flatMap(([at, template]) => {
      const volumes = ((template?.spec as { volumes?: Volumes } | undefined)?.volumes ?? []) as Volumes;
      return volumes.map(({ image }, index): Named => [`${at}.volumes[${index}].image.reference`, image?.reference]);
    }),
  ];
}
