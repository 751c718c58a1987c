/**
 * Generates files from the CRD of TrainingRun and the defaults of list items:
 *
 * - `longrun.dev_trainingruntimes.yaml`, the CRD of TrainingRuntime, which has the fields of runtime-fields.ts
 * - `runtime.md` and `author.md`, a page for each of its two readers
 * - `schema.generated.json`, the schema of TrainingRun for programs
 * - `trainingrun.generated.ts`, the types of a resolved TrainingRun (a field with a default is always present)
 * - `README.md`, which is `reference.head.md` with tables of all fields and of the rules of changes
 *
 *   node crds/generate.ts           writes the files
 *   node crds/generate.ts --check   exits 1 if a file is outdated
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import { withItemDefaults } from "./item-defaults.ts";
import { type Rule, rulesOf } from "./rules.ts";
import { runtimeCrd } from "./runtime-crd.ts";
import { authorTable, runtimeTable } from "./runtime-pages.ts";
import { runtimeSchema } from "./runtime-schema.ts";
import { CRD_FILE, type Schema } from "./schema.ts";

/** Interface names that differ from the field's own, by path; fields that share a name share an interface. */
const NAMES: Record<string, string> = {
  "": "TrainingRun",
  spec: "TrainingRunSpec",
  status: "TrainingRunStatus",
  "spec.tasks": "Task",
  "spec.tasks.publicData": "VolumeSource",
  "spec.tasks.privateData": "VolumeSource",
  "spec.prompts.examples": "PromptExample",
  "spec.tasks.publicData.image": "ImageVolumeSource",
  "spec.tasks.privateData.image": "ImageVolumeSource",
  "spec.model.volume": "ModelVolumeSource",
  "spec.model.volume.image": "ImageVolumeSource",
  "spec.model.source": "ModelSource",
  "spec.model.source.huggingFace": "HuggingFaceSource",
  "spec.model.source.s3": "S3Source",
  "spec.model.source.s3.secretRef": "S3SecretRef",
  "spec.model.source.oci": "OciSource",
  "spec.model.source.oci.secretRef": "OciSecretRef",
  ...podTemplateNames("spec.learner.podTemplate", "Learner"),
  ...podTemplateNames("spec.actors.podTemplate", "Actor"),
  ...podTemplateNames("spec.generation.podTemplate", "Generator"),
  "spec.generation.replicas": "GenerationReplicas",
  "spec.actors.sandboxResources": "Resources",
  "status.display": "DisplayStatus",
  "status.conditions": "Condition",
  "status.score": "ScoreStatus",
  "status.executions": "ExecutionsStatus",
  "status.evaluation": "EvaluationStatus",
  "status.evaluation.before": "EvaluatedPolicyStatus",
  "status.evaluation.after": "EvaluatedPolicyStatus",
  "status.tasks": "TaskStatus",
  "status.tasks.evaluation": "EvaluationStatus",
  "status.tasks.evaluation.before": "EvaluatedPolicyStatus",
  "status.tasks.evaluation.after": "EvaluatedPolicyStatus",
  "status.actors": "ActorsStatus",
  "status.generation": "GenerationStatus",
  "status.checkpoint": "CheckpointStatus",
  "status.notification": "NotificationStatus",
  "spec.warmStart.data": "WarmStartData",
  "spec.warmStart.data.image": "ImageVolumeSource",
  "spec.warmStart.data.configMap": "ConfigMapSource",
  "spec.env": "RunVariable",
  "spec.caBundle.configMap": "CaBundleSource",
  "spec.results.s3": "ResultsS3",
  "spec.results.s3.secretRef": "S3SecretRef",
  "status.results": "ResultsStatus",
  "status.images": "ImagesStatus",
  "status.runtime": "RuntimeStatus",
  "status.failures": "FailuresStatus",
};

/** Types that differ between learner and actors, because programs run in the pods of actors. */
function podTemplateNames(at: string, owner: "Learner" | "Actor" | "Generator"): Record<string, string> {
  return {
    [at]: `${owner}PodTemplate`,
    [`${at}.metadata`]: "PodMetadata",
    [`${at}.spec`]: `${owner}PodSpec`,
    [`${at}.spec.securityContext`]: `${owner}SecurityContext`,
    [`${at}.spec.containers`]: `${owner}Container`,
    [`${at}.spec.containers.env`]: "PodVariable",
    [`${at}.spec.containers.env.valueFrom`]: "PodVariableSource",
    [`${at}.spec.tolerations`]: "Toleration",
    [`${at}.spec.schedulingGates`]: "SchedulingGate",
    [`${at}.spec.imagePullSecrets`]: "PullSecret",
    [`${at}.spec.hostAliases`]: "HostAlias",
    [`${at}.spec.dnsConfig.options`]: "DnsOption",
    [`${at}.spec.containers.volumeMounts`]: "PodVolumeMount",
    [`${at}.spec.volumes`]: "PodVolume",
    [`${at}.spec.volumes.persistentVolumeClaim`]: "PodVolumeClaim",
    [`${at}.spec.volumes.configMap`]: "ConfigMapVolume",
    [`${at}.spec.volumes.configMap.items`]: "ConfigMapFile",
    [`${at}.spec.volumes.image`]: "PodImageVolume",
  };
}

/** Kubernetes' own objects, which its documentation explains; types and tables leave out their fields. */
const isExplainedElsewhere = (schema: Schema): boolean => schema.externalDocs !== undefined;

/** @returns the text of `trainingrun.generated.ts` */
function generateTypes(schema: Schema): string {
  const interfaces = new Map<string, string>();
  interfaceOf(schema, "", interfaces);
  return [
    "// Generated by crds/generate.ts from crds/longrun.dev_trainingruns.yaml. Do not edit.",
    "// The types of a resolved TrainingRun: a field with a default is always present.",
    METADATA,
    ...interfaces.values(),
  ].join("\n\n");
}

const METADATA = `/** Kubernetes' object metadata, as far as longrun reads it. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [field: string]: unknown;
}`;

function interfaceOf(schema: Schema, path: string, interfaces: Map<string, string>): string {
  const name = NAMES[path] ?? pascalCase(path.slice(path.lastIndexOf(".") + 1));
  const nested = new Map<string, string>();
  const lines: string[] = [];
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    const always = schema.required?.includes(field) || "default" in property || path === "";
    const optional = always && field !== "status" ? "" : "?";
    if (property.description) lines.push(`  /** ${property.description} */`);
    lines.push(`  ${field}${optional}: ${typeOf(property, path ? `${path}.${field}` : field, nested)};`);
  }
  if (schema["x-kubernetes-preserve-unknown-fields"]) lines.push("  [field: string]: unknown;");
  const text = `/** ${schema.description} */\nexport interface ${name} {\n${lines.join("\n")}\n}`;
  add(interfaces, name, text, path);
  for (const [nestedName, nestedText] of nested) add(interfaces, nestedName, nestedText, path);
  return name;
}

function add(interfaces: Map<string, string>, name: string, text: string, path: string): void {
  const body = (interfaceText: string): string => interfaceText.slice(interfaceText.indexOf("{"));
  const existing = interfaces.get(name);
  if (existing !== undefined && body(existing) !== body(text))
    throw new Error(`two different objects would be called ${name} (${path}); name one in NAMES of crds/generate.ts`);
  if (existing === undefined) interfaces.set(name, text);
}

function typeOf(schema: Schema, path: string, interfaces: Map<string, string>): string {
  if (path === "metadata") return "ObjectMeta";
  if (schema.enum) return schema.enum.map((value) => `'${value}'`).join(" | ");
  if (schema.anyOf) return "number | string";
  if (isExplainedElsewhere(schema)) return schema.type === "array" ? "unknown[]" : "Record<string, unknown>";
  if (schema.properties) return interfaceOf(schema, path, interfaces);
  switch (schema.type) {
    case "array":
      return schema.items!.enum
        ? `(${typeOf(schema.items!, path, interfaces)})[]`
        : `${typeOf(schema.items!, path, interfaces)}[]`;
    case "object":
      return schema.additionalProperties
        ? `Record<string, ${typeOf(schema.additionalProperties, path, interfaces)}>`
        : "Record<string, unknown>";
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
      return schema.type;
    default:
      throw new Error(`${path} has no type, which crds/generate.ts does not support`);
  }
}

function pascalCase(name: string): string {
  return name[0]!.toUpperCase() + name.slice(1);
}

/** @returns the text of `README.md`, below its head */
function generateReference(schema: Schema): string {
  const { spec, status } = schema.properties!;
  return [
    "<!-- Below this line: generated by crds/generate.ts from crds/longrun.dev_trainingruns.yaml. -->",
    "## spec",
    "Fields with the same values and meaning share a row. In brackets: the source of the default, if the paper or its code states one.",
    tableOf(spec!),
    "## status",
    tableOf(status!),
    "## Rules of changes",
    [
      "A field whose meaning begins with *Cannot change* keeps its value while the run exists: create a new TrainingRun, with `initFrom` to go",
      "on from the run's weights. Further rules of changes:",
    ].join("\n"),
    rulesOfChange(schema),
  ].join("\n\n");
}

/** Objects for which the reference lists only the names of the fields: Kubernetes' own objects, and texts for people. */
const BRIEF =
  /^(conditions|display|images|runtime|notification|engineSeconds|checkpoint)$|\.podTemplate\.spec\.((securityContext|containers\[\])\.|(?!securityContext|containers))/;

/** Fields of a pod that are exactly Kubernetes' own: one row names them all. */
const AS_IN_KUBERNETES =
  /^learner\.podTemplate\.spec\.(nodeSelector|affinity|tolerations|topologySpreadConstraints|priorityClassName|schedulerName|schedulingGates|runtimeClassName|imagePullSecrets|hostAliases|dnsPolicy|dnsConfig|hostUsers)$/;

/** The source of a default that is longrun's own. */
const OURS = / \((?:default [^;]*; )?ours\)/;

/** Returns a row for each field; fields with the same values, default and meaning share one. */
function tableOf(root: Schema): string {
  const cells: { field: string; rest: string }[] = [];
  /** Path of the first object with certain fields; the next object with the same fields refers to it. */
  const shown = new Map<string, string>();
  const walk = (parent: Schema, path: string): void => {
    const all = Object.entries(parent.properties ?? {});
    const asLearner = all.filter(([name, property]) => isAsLearner(root, `${path}${name}`, property));
    cells.push(
      ...asLearner.map(([name]) => ({ field: `${path}${name}`, rest: " | | As in `learner.podTemplate`. |" })),
    );
    const asInKubernetes = all.filter(([name]) => AS_IN_KUBERNETES.test(`${path}${name}`));
    cells.push(...asInKubernetes.map(([name]) => ({ field: `${path}${name}`, rest: " | | As in Kubernetes. |" })));
    for (const [name, property] of all.filter((it) => !asLearner.includes(it) && !asInKubernetes.includes(it))) {
      const field = `${path}${name}`;
      const { default: byDefault } = property;
      const value = byDefault === undefined || typeof byDefault === "object" ? "" : `\`${JSON.stringify(byDefault)}\``;
      const required = parent.required?.includes(name) ? "required" : value;
      const meaning = property.description?.replace(OURS, "").replace(/\(default [^;]*; /, "(") ?? "";
      const explained = isExplainedElsewhere(property) ? ` [Kubernetes](${property.externalDocs!.url}).` : "";
      const fields = JSON.stringify([property.properties, property.items?.properties]);
      const before = fields === "[null,null]" ? undefined : shown.get(fields);
      const brief = BRIEF.test(field);
      const names = brief ? Object.keys(property.properties ?? property.items?.properties ?? {}) : [];
      const same = before === undefined ? "" : ` Fields of \`${before}\`.`;
      const list = names.length > 0 ? ` Fields: ${names.map((it) => `\`${it}\``).join(", ")}.` : same;
      cells.push({ field, rest: `${allowed(property)} | ${required} | ${meaning}${explained}${list} |` });
      if (explained || before !== undefined || brief) continue;
      shown.set(fields, field);
      walk(property, `${field}.`);
      if (property.items) walk(property.items, `${field}[].`);
    }
  };
  walk(root, "");
  const groups = Map.groupBy(cells, ({ rest }) => rest);
  const rows = [...groups].map(([rest, group]) => `| ${group.map(({ field }) => `\`${field}\``).join(" ")} | ${rest}`);
  return ["| field | values | default | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** @returns whether a field of the pod templates of actors and generators is the same in the learner's */
function isAsLearner(root: Schema, path: string, property: Schema): boolean {
  const [, below] = /^(?:actors|generation)\.podTemplate\.(.*)$/.exec(path) ?? [];
  if (below === undefined) return false;
  let schema: Schema | undefined = root.properties!.learner!.properties!.podTemplate;
  for (const part of below.split(".")) {
    schema = schema?.properties?.[part.replace("[]", "")];
    if (part.endsWith("[]")) schema = schema?.items;
  }
  return isDeepStrictEqual(schema, property);
}

const placeOf = ({ at, field }: Rule): string => [at, field].filter(Boolean).join(".");

function rulesOfChange(schema: Schema): string {
  // The field's meaning begins with these rules ("Cannot change").
  const said = / cannot (change|become|be added).* while the run exists/;
  const rules = rulesOf(schema).filter(({ when, message }) => when === "change" && !said.test(message));
  const rows = rules.map((rule) => `| \`${placeOf(rule).replace(/^spec\./, "")}\` | ${rule.message} |`);
  return ["| field | rule |", "| --- | --- |", ...rows].join("\n");
}

function allowed({ type, enum: values, minimum, maximum, maxItems, additionalProperties }: Schema): string {
  if (values) return values.join(", ");
  if (minimum !== undefined && maximum !== undefined)
    return `${type} ${minimum}..${maximum === Number.MAX_SAFE_INTEGER ? "" : maximum}`;
  if (maxItems !== undefined) return `list ≤ ${maxItems}`;
  return type === "object" && additionalProperties ? "map" : (type ?? "");
}

const head = (page: string): string => readFileSync(new URL(`${page}.head.md`, import.meta.url), "utf8");

if (import.meta.main) {
  const crd = parse(readFileSync(CRD_FILE, "utf8"));
  const schema = withItemDefaults(crd.spec.versions[0].schema.openAPIV3Schema);
  const files = {
    "longrun.dev_trainingruntimes.yaml": runtimeCrd(crd),
    "schema.generated.json": JSON.stringify(schema),
    "trainingrun.generated.ts": generateTypes(schema),
    "README.md": `${head("reference")}\n${generateReference(schema)}`,
    "runtime.md": `${head("runtime")}\n${runtimeTable(runtimeSchema(schema).properties!.spec!)}`,
    "author.md": `${head("author")}${authorTable(schema.properties!.spec!)}`,
  };
  for (const [name, content] of Object.entries(files)) {
    const path = fileURLToPath(new URL(name, import.meta.url));
    const text = `${content.trimEnd()}\n`;
    if (!process.argv.includes("--check")) writeFileSync(path, text);
    else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
      console.error(`crds/${name} is outdated: run \`node crds/generate.ts\``);
      process.exitCode = 1;
    }
  }
}
