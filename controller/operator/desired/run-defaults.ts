/**
 * Cluster-wide defaults for fields that a TrainingRun leaves out: `longrun controller --run-defaults FILE`. The administrator's file
 * contains a part of a TrainingRun's spec.
 */
import { parse, stringify } from "yaml";
import {
  type ActorPodTemplate,
  type CaBundle,
  type InheritedMetadata,
  type LearnerPodTemplate,
  ManifestError,
  type PodTemplate,
  parseTrainingRun,
  type Resources,
  type RunVariable,
} from "../../../crds/trainingrun.ts";
import { queueNameOf, type Run } from "./names.ts";
import { mergeStrategically } from "./pod.ts";

export interface RunDefaults {
  inheritedMetadata?: InheritedMetadata;
  queueName?: string;
  env?: RunVariable[];
  caBundle?: CaBundle;
  learner?: { resources?: Resources; podTemplate?: LearnerPodTemplate; storage?: { className?: string } };
  actors?: {
    resources?: Resources;
    sandboxResources?: Resources;
    runtimeClassName?: string;
    podTemplate?: ActorPodTemplate;
  };
}

/** Fields without a default in the CRD. The API server fills in the others before a controller sees them. */
const FIELDS = [
  ...["queueName", "inheritedMetadata", "env", "caBundle"],
  ...["learner.resources", "learner.podTemplate", "learner.storage.className"],
  ...["actors.resources", "actors.sandboxResources", "actors.runtimeClassName", "actors.podTemplate"],
];

/** @throws ManifestError that names a field that cannot have a default, or a broken rule of TrainingRuns */
export function parseRunDefaults(text: string, source: string): RunDefaults {
  const spec: unknown = parse(text) ?? {};
  const other = pathsOf(spec).find((path) => !FIELDS.includes(path));
  if (other !== undefined)
    throw new ManifestError([
      `${source}: ${other || "the file"} cannot have a default; these can: ${FIELDS.join(", ")}`,
    ]);
  const run = {
    ...{ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "run-defaults" } },
    spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" }, ...(spec as RunDefaults) },
  };
  parseTrainingRun(stringify(run), source, [], { cluster: true });
  return spec as RunDefaults;
}

/** Returns the paths to fields that can have a default, and to values that are no objects. */
function pathsOf(value: unknown, path = ""): string[] {
  const isMap = value !== null && typeof value === "object" && !Array.isArray(value);
  if (FIELDS.includes(path) || !isMap) return [path];
  return Object.entries(value).flatMap(([key, part]) => pathsOf(part, path ? `${path}.${key}` : key));
}

/**
 * Returns the run with defaults for the fields that it leaves out. The run's `podTemplate` is merged over the default field by field;
 * `resources` are the run's own or the default as a whole. `learner.storage.className` is handled elsewhere (`volume.ts`), because the
 * class of an existing volume cannot change. Labels and annotations of both are joined.
 */
export function withRunDefaults(run: Run, defaults: RunDefaults | undefined): Run {
  if (defaults === undefined) return run;
  const { queueName, inheritedMetadata, env, caBundle, learner = {}, actors = {} } = defaults;
  const { spec } = run;
  const resources = (own: Resources, byDefault: Resources | undefined) => (isEmpty(own) ? (byDefault ?? own) : own);
  return {
    ...run,
    spec: {
      ...(queueName !== undefined && queueNameOf(run) === undefined && { queueName }),
      ...(caBundle && { caBundle }),
      ...spec,
      ...(inheritedMetadata && {
        inheritedMetadata: mergeStrategically(inheritedMetadata, spec.inheritedMetadata ?? {}) as InheritedMetadata,
      }),
      ...(env && { env: mergeStrategically(env, spec.env ?? [], "env") as RunVariable[] }),
      learner: {
        ...spec.learner,
        resources: resources(spec.learner.resources, learner.resources),
        ...podTemplate(spec.learner.podTemplate, learner.podTemplate),
      },
      actors: {
        ...(actors.runtimeClassName !== undefined && { runtimeClassName: actors.runtimeClassName }),
        ...spec.actors,
        resources: resources(spec.actors.resources, actors.resources),
        sandboxResources: resources(spec.actors.sandboxResources, actors.sandboxResources),
        ...podTemplate(spec.actors.podTemplate, actors.podTemplate),
      },
    },
  };
}

/** Whether there are neither requests nor limits nor claims. */
export const isEmpty = ({ requests = {}, limits = {}, claims = [] }: Resources) =>
  Object.keys({ ...requests, ...limits }).length + claims.length === 0;

function podTemplate<Template extends PodTemplate>(
  own: Template | undefined,
  byDefault: Template | undefined,
): { podTemplate?: Template } {
  if (byDefault === undefined) return own ? { podTemplate: own } : {};
  return { podTemplate: own ? (mergeStrategically(byDefault, own) as Template) : byDefault };
}
