/** The TrainingRun schema of the CRD file, and the few parts of OpenAPI v3 that it uses. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";

export const CRD_FILE = fileURLToPath(new URL("./longrun.dev_trainingruns.yaml", import.meta.url));
/**
 * The schema of CRD_FILE with the defaults of list items, by `generate.ts`: every process that reads a manifest reads it, and YAML of this
 * size takes 0.3 s.
 */
const SCHEMA_FILE = fileURLToPath(new URL("./schema.generated.json", import.meta.url));

export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | false;
  items?: Schema;
  anyOf?: Schema[];
  enum?: string[];
  /** Documentation of a field of Kubernetes; fields below it have no text of their own. */
  externalDocs?: { url: string };
  default?: unknown;
  minimum?: number;
  maximum?: number;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-validations"?: {
    rule: string;
    message?: string;
    messageExpression?: string;
    fieldPath?: string;
    reason?: string;
  }[];
  [keyword: string]: unknown;
}

/** @returns the OpenAPI v3 schema of the served version */
export function readSchema(): Schema {
  return JSON.parse(readFileSync(SCHEMA_FILE, "utf8"));
}

/**
 * Returns the schema with Kubernetes' strict field validation: an object with named properties has no others, and metadata is the same as
 * for every Kubernetes object.
 */
export function strictSchema(): Schema {
  const schema = strict(readSchema());
  schema.required = ["apiVersion", "kind", "metadata", "spec"];
  schema.properties!.apiVersion!.enum = ["longrun.dev/v1alpha1"];
  schema.properties!.kind!.enum = ["TrainingRun"];
  schema.properties!.metadata = metadataSchema;
  delete schema.properties!.status!.default; // of a cluster alone
  return schema;
}

const stringMap: Schema = { type: "object", additionalProperties: { type: "string" } };
export const metadataSchema: Schema = {
  type: "object",
  description: "Kubernetes' object metadata.",
  required: ["name"],
  properties: {
    name: {
      type: "string",
      minLength: 1,
      maxLength: 253,
      description: "Name: lower-case letters, digits and hyphens; of a run at most 40.",
    },
    namespace: { type: "string", description: "Namespace; only on Kubernetes." },
    labels: { ...stringMap, description: "Labels." },
    annotations: { ...stringMap, description: "Annotations." },
  },
  "x-kubernetes-preserve-unknown-fields": true,
};

export function strict(schema: Schema): Schema {
  const copy: Schema = { ...schema };
  if (schema.properties) {
    copy.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, s]) => [name, strict(s)]));
    if (!schema["x-kubernetes-preserve-unknown-fields"]) copy.additionalProperties = false;
  }
  if (schema.items) copy.items = strict(schema.items);
  delete copy.allOf; // the API server needs it to enforce `minimum`
  if (schema["x-kubernetes-list-type"] === "set") copy.uniqueItems = true;
  return copy;
}

/**
 * Returns the value without the fields that have the schema's defaults: only what the author wrote. A later schema with more fields that
 * have defaults gives the same result.
 */
export function withoutDefaults(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value)) return value.map((item) => (schema.items ? withoutDefaults(item, schema.items) : item));
  const { properties } = schema;
  if (value === null || typeof value !== "object" || !properties) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, given]) => {
      const property = properties[name];
      if (!property) return [[name, given]];
      const sparse = withoutDefaults(given, property);
      return "default" in property && isDeepStrictEqual(sparse, withoutDefaults(property.default, property))
        ? []
        : [[name, sparse]];
    }),
  );
}
