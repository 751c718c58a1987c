/**
 * Compares a value with a structural schema of OpenAPI v3, as the API server does, and fills in its defaults.
 *
 * A validator that compiles a schema, such as ajv, needs a second of processor time for the CRD's 1,500 parts, in each process that reads a
 * manifest. This one needs a millisecond for a manifest. It knows the keywords that the CRD has; `faults.test.ts` compares it with ajv.
 */
import type { Path } from "./overrides.ts";
import type { Schema } from "./schema.ts";

/** A value that does not fit its schema. */
export interface Fault {
  path: Path;
  /** The value; undefined where it is missing. */
  value: unknown;
  /** The schema of the value; of an unknown field that of the object which has it. */
  schema: Schema;
  kind: "Missing" | "Unknown" | "Unfit";
}

/**
 * Fills in the defaults of `value`, in place, and returns where it does not fit: at most one fault for each path, an object's own faults
 * before those of its fields.
 *
 * @throws Error if the schema has a keyword that this function does not know
 */
export function fillAndCompare(value: unknown, schema: Schema, path: Path = []): Fault[] {
  const faults: Fault[] = fits(value, schema) ? [] : [{ path, value, schema, kind: "Unfit" }];
  if (schema.type !== undefined && !isOfType(value, schema.type)) return faults;
  if (Array.isArray(value))
    for (const [index, item] of value.entries())
      faults.push(...(schema.items ? fillAndCompare(item, schema.items, [...path, index]) : []));
  else if (typeof value === "object" && value !== null)
    faults.push(...faultsOfFields(value as Record<string, unknown>, schema, path));
  return faults;
}

function faultsOfFields(object: Record<string, unknown>, schema: Schema, path: Path): Fault[] {
  const { properties = {}, required = [], additionalProperties } = schema;
  for (const [name, { default: preset }] of Object.entries(properties))
    if (object[name] === undefined && preset !== undefined) object[name] = structuredClone(preset);

  const faults = required.flatMap((name): Fault[] => {
    const at = [...path, name];
    return object[name] === undefined
      ? [{ path: at, value: undefined, schema: properties[name] ?? {}, kind: "Missing" }]
      : [];
  });
  for (const [name, value] of Object.entries(object)) {
    if (Object.hasOwn(properties, name)) continue;
    const at = [...path, name];
    if (additionalProperties === false) faults.push({ path: at, value, schema, kind: "Unknown" });
    else if (additionalProperties) faults.push(...fillAndCompare(value, additionalProperties, at));
  }
  for (const [name, property] of Object.entries(properties))
    if (object[name] !== undefined) faults.push(...fillAndCompare(object[name], property, [...path, name]));
  return faults;
}

/** Whether a value fits a keyword's argument. A keyword of another type says nothing of the value. */
type Keyword = (value: never, argument: never) => boolean;

const OF_NUMBERS: Record<string, Keyword> = {
  minimum: (value: number, least: number) => value >= least,
  maximum: (value: number, most: number) => value <= most,
};
const OF_TEXTS: Record<string, Keyword> = {
  minLength: (value: string, least: number) => [...value].length >= least,
  maxLength: (value: string, most: number) => value.length <= most || [...value].length <= most,
  pattern: (value: string, pattern: string) => new RegExp(pattern, "u").test(value),
};
const OF_LISTS: Record<string, Keyword> = {
  minItems: (value: unknown[], least: number) => value.length >= least,
  maxItems: (value: unknown[], most: number) => value.length <= most,
  uniqueItems: (value: unknown[]) => new Set(value.map((item) => JSON.stringify(item))).size === value.length,
};
const OF_OBJECTS: Record<string, Keyword> = {
  maxProperties: (value: object, most: number) => Object.keys(value).length <= most,
};
const OF_ALL: Record<string, Keyword> = {
  type: (value: unknown, type: string) => isOfType(value, type),
  enum: (value: unknown, values: unknown[]) => values.includes(value),
  anyOf: (value: unknown, schemas: Schema[]) => schemas.some((schema) => fits(value, schema)),
};

function fits(value: unknown, schema: Schema): boolean {
  return [OF_ALL, keywordsOf(value)].every((keywords) =>
    Object.entries(keywords).every(([name, test]) => {
      const argument = schema[name];
      return argument === undefined || test(value as never, argument as never);
    }),
  );
}

function keywordsOf(value: unknown): Record<string, Keyword> {
  if (typeof value === "number") return OF_NUMBERS;
  if (typeof value === "string") return OF_TEXTS;
  if (Array.isArray(value)) return OF_LISTS;
  return typeof value === "object" && value !== null ? OF_OBJECTS : {};
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}

/** Keywords that say nothing of a value, or what rules.ts looks at. */
const SILENT =
  /^(?:description|externalDocs|format|default|properties|required|additionalProperties|items|x-kubernetes-.*)$/;

/** Returns the keywords of a schema that `fillAndCompare` does not know. */
export function unknownKeywords(schema: Schema): string[] {
  const known = { ...OF_ALL, ...OF_NUMBERS, ...OF_TEXTS, ...OF_LISTS, ...OF_OBJECTS };
  const below = [
    ...Object.values(schema.properties ?? {}),
    ...(schema.additionalProperties ? [schema.additionalProperties] : []),
    ...(schema.items ? [schema.items] : []),
    ...(schema.anyOf ?? []),
  ];
  const own = Object.keys(schema).filter((keyword) => !(keyword in known) && !SILENT.test(keyword));
  return [...new Set([...own, ...below.flatMap(unknownKeywords)])];
}
