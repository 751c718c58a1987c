/** The comparison of values with the CRD's schema, beside ajv's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import fc from "fast-check";
import { fillAndCompare, unknownKeywords } from "./faults.ts";
import { MINIMAL } from "./manifest.fixture.ts";
import { formatPath, type Path } from "./overrides.ts";
import { type Schema, strictSchema } from "./schema.ts";
import { parseTrainingRun } from "./trainingrun.ts";

const schema = strictSchema();
const ajv = new Ajv({ allErrors: true, useDefaults: true, strict: false, validateFormats: false });
const validate = ajv.compile(schema);

/** Returns the paths that ajv finds fault with, as JSON pointers. */
function faultsOfAjv(value: unknown): string[] {
  validate(value);
  const paths = (validate.errors ?? []).map(({ instancePath, params }) => {
    const object = instancePath.replaceAll("~1", "/").replaceAll("~0", "~");
    return [object, params.missingProperty ?? params.additionalProperty].filter((part) => part !== undefined).join("/");
  });
  return [...new Set(paths)];
}
/** Without lists whose items have faults: whether equal items are a fault as well depends, with ajv, on the type that they should have. */
const innermost = (paths: string[]) => paths.filter((at) => !paths.some((other) => other.startsWith(`${at}/`))).sort();
const pointer = (path: Path) => path.map((key) => `/${key}`).join("");
const ownFaults = (value: unknown) => fillAndCompare(value, schema).map(({ path }) => pointer(path));

/** Returns each path of a value and of the fields that its schema has besides, not below a field that is absent. */
function placesOf(value: unknown, at: Schema, path: Path = []): Path[] {
  if (Array.isArray(value)) return [path, ...value.flatMap((item, i) => placesOf(item, at.items ?? {}, [...path, i]))];
  if (typeof value !== "object" || value === null) return [path];
  const names = new Set([...Object.keys(value), ...Object.keys(at.properties ?? {})]);
  return [path].concat(
    [...names].flatMap((name) =>
      placesOf((value as Record<string, unknown>)[name], at.properties?.[name] ?? {}, [...path, name]),
    ),
  );
}

function replaced(value: unknown, path: Path, by: unknown): unknown {
  const copy = structuredClone(value);
  const parent = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], copy);
  (parent as Record<string, unknown>)[path.at(-1)!] = by;
  return copy;
}

const RUN = parseTrainingRun(
  `${MINIMAL}  learner: { podTemplate: { spec: { nodeSelector: { a: b }, tolerations: [ { key: gpu } ] } } }
  prompts: { examples: [ { user: a, assistant: b } ] }
`,
  "run.yaml",
);
const places = placesOf(RUN, schema).filter((path) => path.length > 0);
const anything = fc.oneof(
  fc.constantFrom(undefined, null, -1, 0, 0.5, 1, 1e9, true, "", "Float32", "4Gi", "ä".repeat(64), "ä".repeat(400)),
  fc.constantFrom([], {}, ["a", "a"], [{ name: "a" }], { zzz: 1 }, { name: 1 }, { key: "", zzz: {} }),
  fc.jsonValue({ maxDepth: 2 }),
);

test("The CRD has no keyword that is not compared", () => {
  assert.deepEqual(unknownKeywords(schema), []);
  assert.deepEqual(unknownKeywords({ type: "object", properties: { a: { multipleOf: 2, const: 1 } } }), [
    "multipleOf",
    "const",
  ]);
});

test("Faults and defaults are ajv's, whatever stands at whatever place", () => {
  assert.ok(places.length > 200, `${places.length} places`);
  fc.assert(
    fc.property(fc.constantFrom(...places), anything, (path, by) => {
      const [own, other] = [replaced(RUN, path, by), replaced(RUN, path, by)];
      assert.deepEqual(innermost(ownFaults(own)), innermost(faultsOfAjv(other)), formatPath(path));
      assert.deepEqual(own, other);
    }),
    { numRuns: 500 },
  );
});

test("A default is a copy: a change of one run's value does not reach the next one", () => {
  const learnerOf = () => parseTrainingRun(MINIMAL, "run.yaml").spec.learner as unknown as Record<string, unknown>;
  learnerOf().changed = true;
  assert.equal(learnerOf().changed, undefined);
});
