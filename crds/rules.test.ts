import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseQuantity } from "./quantity.ts";
import { BASE, RULE_CASES, type RuleCase } from "./rule-cases.ts";
import { brokenRules, RULES, type Rule } from "./rules.ts";
import { readSchema, type Schema } from "./schema.ts";
import { parseTrainingRun, type TrainingRun } from "./trainingrun.ts";

function ruleOf({ at, message }: RuleCase): Rule {
  const found = RULES.filter((rule) => rule.at === at && rule.message.startsWith(message));
  assert.equal(found.length, 1, `${found.length} rules at ${at} begin with ${message}`);
  return found[0]!;
}

/** What the schema makes of `BASE`, whatever the rules say. */
const resolved = (overrides: string[]): TrainingRun => parseTrainingRun(BASE, "run.yaml", overrides, { rules: [] });

describe("each rule refuses what it should and accepts what is next to it", () => {
  for (const ruleCase of RULE_CASES) {
    const { at, message, refused, accepted, before, phase } = ruleCase;
    test(`${at || "manifest"}: ${message}: ${refused.join(" ") || "removed"}`, () => {
      const expected = ruleOf(ruleCase);
      const existing = before && { ...resolved(before), ...(phase && { status: { phase } }) };
      const broken = (overrides: string[]): string[] =>
        brokenRules(resolved(overrides), { cluster: true, before: existing }).map(
          (b) => `${b.rule.at}: ${b.rule.message}`,
        );
      assert.deepEqual(broken(refused), [`${expected.at}: ${expected.message}`]);
      assert.deepEqual(broken(accepted), []);
    });
  }
  test("and no rule is without a case", () => {
    const tested = new Set(RULE_CASES.map(ruleOf));
    const untested = RULES.filter((rule) => !tested.has(rule));
    assert.deepEqual(
      untested.map(({ at, message }) => `${at}: ${message}`),
      [],
    );
  });
});

/** The text of an expression that puts the value after it. A message has one line, else the API server shows the rule. */
function withoutValue(expression: string): string {
  const [, text] = /^'(.*) [(]it is "' [+] self[.]replace[(]'\\n', ' '[)] [+] '"[)]'$/.exec(expression)!;
  return text!.replaceAll("\\'", "'");
}

describe("the CRD", () => {
  interface CelRule {
    path: string;
    rule: string;
    /** Without the value, which `messageExpression` adds to it. */
    message: string;
    fieldPath?: string;
    reason?: string;
  }
  const cel: CelRule[] = [];
  const schemas = new Map<string, Schema>();
  const collect = (schema: Schema, path: string): void => {
    schemas.set(path, schema);
    for (const { message, messageExpression, ...validation } of schema["x-kubernetes-validations"] ?? [])
      cel.push({ path, ...validation, message: message ?? withoutValue(messageExpression!) });
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = path ? `${path}.${name}` : name;
      collect(property, at);
      if (property.items) collect(property.items, `${at}[]`);
    }
  };
  collect(readSchema(), "");

  test("has the same rules in CEL as rules.ts has, which blame the same field", () => {
    const inCel = cel.map(({ path, message, fieldPath }) => `${path}${fieldPath ?? ""}: ${message}`);
    // CEL cannot blame a field of metadata, which the schema leaves to Kubernetes.
    const blamed = ([first]: string[]): string =>
      first === undefined || first.startsWith("metadata") ? "" : `.${first}`;
    const here = RULES.map(({ at, fields, message }) => `${at}${blamed(fields)}: ${message}`);
    assert.deepEqual(inCel.sort(), here.sort());
  });
  test("says in a field's description that it cannot change, as kubectl explain shows no rules", () => {
    const fixed = RULES.filter(
      ({ when, at, message }) => when === "change" && at && message.includes("cannot change"),
    ).map(({ at, fields: [first] }) => [at, first].filter(Boolean).join("."));
    const described = [...schemas]
      .filter(([, { description }]) => description?.startsWith("Cannot change."))
      .map(([path]) => path);
    assert.deepEqual(described.sort(), ["spec.tasks[].name", ...fixed].sort());
  });
  test("has at least 40 of them, each with a text of its own", () => {
    assert.ok(new Set(cel.map(({ message }) => message)).size >= 40);
  });
  test("says Forbidden where a change is refused, and only there", () => {
    for (const { path, message, rule, reason } of cel) {
      const change = RULES.find((r) => r.at === path && r.message === message)?.when === "change";
      assert.deepEqual([rule.includes("oldSelf"), reason === "FieldValueForbidden"], [change, change], message);
    }
  });
});

describe("a quantity", () => {
  const cases: [quantity: number | string, value: number][] = [
    [2, 2],
    ["2", 2],
    ["500m", 0.5],
    ["100m", 0.1],
    ["1.5", 1.5],
    ["2k", 2000],
    ["1Ki", 1024],
    ["0.5Gi", 536870912],
    ["3M", 3000000],
    ["1Ti", 2 ** 40],
    ["2E", 2e18],
  ];
  for (const [quantity, value] of cases) test(`${quantity}`, () => assert.equal(parseQuantity(quantity), value));
  for (const wrong of ["", "Gi", "1 Gi", "1gi", "-1", "1e3", "1.", "1Gi1"])
    test(`"${wrong}" is none`, () =>
      assert.throws(() => parseQuantity(wrong), /RangeError.*is no quantity; write it as/));
});
