/** The schema of TrainingRuntime: the fields of runtime-fields.ts as TrainingRun's schema has them, and limits. */
import { RUNTIME_FIELDS } from "./runtime-fields.ts";
import { metadataSchema, readSchema, type Schema, strict } from "./schema.ts";

/** Returns the schema of a TrainingRuntime. @param run the schema of TrainingRun */
export function runtimeSchema(run: Schema): Schema {
  const properties: Record<string, Schema> = {};
  for (const [path, names] of Object.entries(RUNTIME_FIELDS)) {
    const whole = at(run.properties!.spec!, path);
    const part = path === "" ? properties : partOf(properties, path, whole);
    for (const name of names) part[name] = asDefault(whole.properties![name]!);
  }
  const spec = { type: "object", description: SPEC, properties: { ...properties, limits: LIMITS } } satisfies Schema;
  return { type: "object", description: KIND, required: ["metadata", "spec"], properties: { spec } };
}

/** Returns the schema with Kubernetes' strict field validation. */
export function strictRuntimeSchema(): Schema {
  const schema = strict(runtimeSchema(readSchema()));
  schema.required = ["apiVersion", "kind", "metadata", "spec"];
  schema.properties = {
    apiVersion: { type: "string", description: "longrun.dev/v1alpha1", enum: ["longrun.dev/v1alpha1"] },
    kind: { type: "string", description: "TrainingRuntime", enum: ["TrainingRuntime"] },
    metadata: metadataSchema,
    ...schema.properties,
  };
  return schema;
}

const KIND = "Defaults and limits of TrainingRuns that a platform team owns; runs name it in spec.runtimeRef.";
const SPEC =
  "Defaults for fields of TrainingRuns, and limits. A run's own value has precedence; a value that equals TrainingRun's default counts as left out. Pod templates, env and inheritedMetadata are merged.";

const names = (description: string): Schema => ({
  type: "array",
  maxItems: 64,
  "x-kubernetes-list-type": "set",
  description,
  items: { type: "string", minLength: 1, maxLength: 253 },
});

const LIMITS: Schema = {
  type: "object",
  description:
    "What runs of this runtime may take. The condition RuntimeRefuses names the field and the value of a run that takes more.",
  properties: {
    gpus: {
      type: "integer",
      format: "int32",
      minimum: 0,
      maximum: 1_000_000,
      description:
        "Most GPUs, or parts of GPUs, of learner, generators and actors together; a run may then have no resourceClaims of its own. Absent: no limit.",
    },
    actors: {
      type: "integer",
      format: "int32",
      minimum: 0,
      maximum: 1_000_000,
      description: "Most actors: actors.max and actors.replicas. Absent: no limit.",
    },
    storageClassNames: names("StorageClasses that a run may name in learner.storage.className. Absent: any."),
    priorityClassNames: names("PriorityClasses that the pod templates of a run may name. Absent: any."),
    runtimeClassNames: names("RuntimeClasses that a run may name, in actors and pod templates. Absent: any."),
    images: {
      type: "array",
      maxItems: 64,
      "x-kubernetes-list-type": "set",
      items: { type: "string", minLength: 1, maxLength: 1024 },
      description:
        "Patterns of the images that a run may name, image volumes included; * stands for any text, as in registry.example.com/ml/*. Absent: any.",
    },
  },
};

function at(schema: Schema, path: string): Schema {
  return path.split(".").reduce((part, name) => (name === "" ? part : part.properties![name]!), schema);
}

/** Returns the properties of the object at a path, which is added if it is missing. */
function partOf(properties: Record<string, Schema>, path: string, whole: Schema): Record<string, Schema> {
  const [name, ...rest] = path.split(".");
  properties[name!] ??= { type: "object", description: whole.description ?? "", properties: {} };
  const below = properties[name!]!.properties!;
  return rest.length === 0 ? below : partOf(below, rest.join("."), whole);
}

/** Returns a field without its own default, and without rules that compare a run with its earlier state. */
function asDefault({ default: _, ...field }: Schema): Schema {
  return { ...withoutChanges(field), description: meaningOf(field.description) };
}

function withoutChanges(schema: Schema): Schema {
  const { "x-kubernetes-validations": rules = [], properties, items, ...rest } = schema;
  const kept = rules.filter(({ rule }) => !rule.includes("oldSelf"));
  return {
    ...rest,
    ...(kept.length > 0 && { "x-kubernetes-validations": kept }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, it]) => [name, withoutChanges(it)])),
    }),
    ...(items && { items: withoutChanges(items) }),
  };
}

/** Leaves out what is said of a run alone: that a field cannot change, and its default. */
function meaningOf(description = ""): string {
  return description.replace(/^Cannot change[^.]*\. /, "").replace(/ \(default [^)]*\)/, "");
}
