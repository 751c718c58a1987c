import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readSchema, type Schema } from "./schema.ts";

describe("the CRD", () => {
  const fields: { path: string; schema: Schema }[] = [];
  const collect = (schema: Schema, path: string): void => {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = path ? `${path}.${name}` : name;
      fields.push({ path: at, schema: property });
      collect(property, at);
      if (property.items) collect(property.items, `${at}[]`);
    }
  };
  const root = readSchema();
  collect(root, "");
  const spec = fields.filter(({ path }) => path.startsWith("spec."));

  test("describes every field but those of affinity, which are the core API's own and would need 10 kB", () => {
    const isCore = (path: string) =>
      path === "metadata" || /\.(affinity|labelSelector)\b./.test(path) || path.endsWith(".labelSelector");
    const undescribed = fields.filter(({ path, schema }) => !isCore(path) && !schema.description);
    assert.deepEqual(
      undescribed.map(({ path }) => path),
      [],
    );
    assert.ok(spec.length > 120);
  });
  test("Kubernetes 1.30 takes the rules: it counts a quantity as 3 MB of text, so few quantities fit into its budget", () => {
    const isQuantities = ({ additionalProperties }: Schema) =>
      typeof additionalProperties === "object" && additionalProperties["x-kubernetes-int-or-string"] === true;
    const maps = fields.filter(({ schema }) => isQuantities(schema));
    assert.ok(maps.length >= 8);
    for (const { path, schema } of maps) assert.ok((schema.maxProperties as number) <= 7, path);
  });

  test("states every default and its source, since kubectl explain shows descriptions alone", () => {
    const silent = spec.filter(({ schema: { default: value, description } }) => {
      if (value === undefined || typeof value === "object") return false;
      const [, stated, source] = /\(default ([^;]+); ((?:[^()]|\([^()]*\))*)\)\.$/.exec(description!) ?? [];
      const same = typeof value === "number" ? Number(stated) === value : stated === (String(value) || "empty");
      return !same || !/^(.*; )?(paper|verl v0\.2|ours)\b/.test(source!);
    });
    assert.deepEqual(
      silent.map(({ path, schema }) => `${path}: ${schema.description}`),
      [],
    );
  });
  test("bounds every number, text and list", () => {
    const unbounded = spec.filter(({ path, schema: s }) => {
      if (s.type === "integer" || s.type === "number")
        return !path.includes(".rewardRange.") && (s.minimum === undefined || s.maximum === undefined);
      if (s.type === "string") return s.enum === undefined && s.maxLength === undefined;
      return s.type === "array" && s.maxItems === undefined;
    });
    assert.deepEqual(
      unbounded.map(({ path }) => path),
      [],
    );
  });
  test("is structural: it has no keyword that Kubernetes refuses beside properties", () => {
    const refused = fields.filter(({ schema }) =>
      ["additionalProperties", "oneOf", "allOf", "not", "$ref"].some((k) => k in schema && schema.properties),
    );
    assert.deepEqual(
      refused.map(({ path }) => path),
      [],
    );
    const untyped = fields.filter(({ schema }) => !schema.type);
    assert.deepEqual(
      untyped.map(({ path }) => path),
      [],
    );
  });
});
