/**
 * Validates longrun's objects with Kubernetes' own OpenAPI, for several versions: finds unknown fields and wrong types without a cluster.
 * OpenAPI lacks immutability, CEL and cross-field rules, which only a real API server checks: `install.chart.ts` has one.
 *
 *     node test/chart/kubernetes-schemas.ts      makes fixtures/kubernetes-MINOR.json anew; needs Go, and minutes
 *
 * The files contain `api/openapi-spec/swagger.json` of the Go module k8s.io/kubernetes: the kinds below with everything that they refer to,
 * without descriptions.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import type { KubeObject } from "../../controller/operator/kube/types.ts";

/** The oldest supported version, the newest version, and some in between. */
const PATCHES: Record<string, string> = {
  "1.30": "v1.30.14",
  "1.31": "v1.31.14",
  "1.33": "v1.33.13",
  "1.34": "v1.34.2",
  "1.36": "v1.36.3",
};
export const KUBERNETES_MINORS = Object.keys(PATCHES);

const KINDS = [
  ...[
    "v1 ConfigMap",
    "v1 Namespace",
    "v1 PersistentVolumeClaim",
    "v1 Pod",
    "v1 Secret",
    "v1 Service",
    "v1 ServiceAccount",
  ],
  ...["apps/v1 Deployment", "batch/v1 Job", "networking.k8s.io/v1 NetworkPolicy", "policy/v1 PodDisruptionBudget"],
  ...["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"].map((kind) => `rbac.authorization.k8s.io/v1 ${kind}`),
  ...["scheduling.k8s.io/v1 PriorityClass", "apiextensions.k8s.io/v1 CustomResourceDefinition"],
];

type Schema = Record<string, unknown>;
type Definitions = Record<string, Schema>;

const fileOf = (minor: string) => fileURLToPath(new URL(`fixtures/kubernetes-${minor}.json`, import.meta.url));

/** Values that OpenAPI calls strings, and that the API server also accepts as numbers. */
const NUMBER_OR_STRING = new Set([
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
  "io.k8s.apimachinery.pkg.api.resource.Quantity",
]);

type Validator = (object: KubeObject) => string[] | undefined;
const validators = new Map<string, Validator>();

/** @returns a function that returns what is wrong with an object, or undefined if Kubernetes has no such kind */
export function kubernetesValidator(minor: string): Validator {
  const validator = validators.get(minor) ?? compile(minor);
  validators.set(minor, validator);
  return validator;
}

function compile(minor: string): Validator {
  const definitions = JSON.parse(readFileSync(fileOf(minor), "utf8")) as Definitions;
  const strict = Object.fromEntries(
    Object.entries(definitions).map(([name, schema]) => [
      name,
      NUMBER_OR_STRING.has(name) ? { type: ["string", "number"] } : closed(schema),
    ]),
  );
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ $id: "kubernetes", definitions: strict });
  const names = new Map(
    Object.entries(definitions).flatMap(([name, schema]) => kindsOf(schema).map((kind) => [kind, name])),
  );
  return (object) => {
    const name = names.get(`${object.apiVersion} ${object.kind}`);
    if (name === undefined) return undefined;
    const validate = ajv.getSchema(`kubernetes#/definitions/${name}`)!;
    if (validate(object)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };
}

/** Forbids fields that are not named. */
function closed(schema: Schema): Schema {
  return schema.properties && !schema.additionalProperties ? { ...schema, additionalProperties: false } : schema;
}

function kindsOf(schema: Schema): string[] {
  const kinds = (schema["x-kubernetes-group-version-kind"] ?? []) as { group: string; version: string; kind: string }[];
  return kinds.map(({ group, version, kind }) => `${group ? `${group}/` : ""}${version} ${kind}`);
}

/** Returns the definitions of KINDS and of everything that they refer to. */
function reduce(all: Definitions): Definitions {
  const kept: Definitions = {};
  const keep = (name: string) => {
    if (kept[name]) return;
    kept[name] = withoutDescriptions(all[name]!) as Schema;
    for (const [, other] of JSON.stringify(kept[name]).matchAll(/"#\/definitions\/([^"]+)"/g)) keep(other!);
  };
  for (const kind of KINDS) {
    const name = Object.keys(all).find((it) => kindsOf(all[it]!).includes(kind));
    if (!name) throw new Error(`this Kubernetes has no ${kind}`);
    keep(name);
  }
  return Object.fromEntries(Object.entries(kept).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function withoutDescriptions(value: unknown, inProperties = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutDescriptions(item));
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).filter(
    ([key, part]) => inProperties || key !== "description" || typeof part !== "string",
  );
  return Object.fromEntries(entries.map(([key, part]) => [key, withoutDescriptions(part, key === "properties")]));
}

if (import.meta.main) {
  const folder = mkdtempSync(join(tmpdir(), "longrun-schemas-"));
  try {
    for (const [minor, version] of Object.entries(PATCHES)) {
      const args = ["mod", "download", "-json", `k8s.io/kubernetes@${version}`];
      const { Dir } = JSON.parse(execFileSync("go", args, { cwd: folder, encoding: "utf8" }));
      const { definitions } = JSON.parse(readFileSync(`${Dir}/api/openapi-spec/swagger.json`, "utf8"));
      writeFileSync(fileOf(minor), `${JSON.stringify(reduce(definitions))}\n`);
      process.stdout.write(`${fileOf(minor)}\n`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
