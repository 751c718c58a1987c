import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MLE_BENCH_TASKS } from "./mlebench.ts";
import { isQuantity, parseQuantity } from "./quantity.ts";
import type { RuleCase } from "./rule-case.ts";
import { BASE, RULE_CASES } from "./rule-cases.ts";
import { CLUSTER_ONLY, type Rule, type RuleOptions, rulesOf } from "./rules.ts";
import { readSchema, type Schema } from "./schema.ts";
import { ManifestError, parseTrainingRun, type TrainingRun } from "./trainingrun.ts";

const RULES = rulesOf(readSchema());

function ruleOf({ at, message }: RuleCase): Rule {
  const found = RULES.filter((rule) => rule.at === at && rule.message.startsWith(message));
  assert.equal(found.length, 1, `${found.length} rules at ${at} begin with ${message}`);
  return found[0]!;
}

function problemsOf(overrides: string[], options: RuleOptions): string[] {
  try {
    parseTrainingRun(BASE, "run.yaml", overrides, options);
    return [];
  } catch (error) {
    assert.ok(error instanceof ManifestError, String(error));
    return error.problems;
  }
}

describe("Each rule refuses its bad cases and accepts the neighbouring good ones", () => {
  for (const ruleCase of RULE_CASES) {
    const { at, message, refused, accepted, before: overrides, phase } = ruleCase;
    test(`${at || "manifest"}: ${message}: ${refused.join(" ") || "removed"}`, () => {
      const { message: expected, field = "" } = ruleOf(ruleCase);
      const before = overrides && {
        ...parseTrainingRun(BASE, "old.yaml", overrides),
        ...(phase && { status: { phase } }),
      };
      const [problem, ...others] = problemsOf(refused, { cluster: true, before });
      assert.deepEqual(others, []);
      const [, place, said] = /: (\S+|the manifest) does not fit: (.*)$/.exec(problem!)!;
      assert.ok(said!.startsWith(expected), problem);
      const blamed = [at.replaceAll("[]", "[0]"), field].filter(Boolean).join(".");
      assert.equal(place, blamed || "metadata.name");
      assert.deepEqual(problemsOf(accepted, { cluster: true, before }), []);
    });
  }
  test("Every rule has a case", () => {
    const tested = RULE_CASES.map(ruleOf).map(({ at, message }) => `${at}: ${message}`);
    assert.deepEqual([...new Set(tested)].sort(), RULES.map(({ at, message }) => `${at}: ${message}`).sort());
  });
});

describe("a rule", () => {
  const of = (overrides: string[], options: RuleOptions = {}): string => problemsOf(overrides, options).join("\n");

  test("for Kubernetes alone is not applied on one machine", () => {
    assert.equal(of(["initFrom.path=a"]), "");
    assert.match(of(["initFrom.path=a"], { cluster: true }), /path works on one machine only/);
  });
  test("about a change matches the items of a list by their names", () => {
    const task = (description: string): string => `tasks=[{name: diamonds, description: ${description}}]`;
    const before = parseTrainingRun(BASE, "old.yaml", [task("a")]);
    assert.equal(of([task("a")], { before }), "");
    assert.match(of([task("b")], { before }), /spec.tasks\[0\].description does not fit: description of a task cannot/);
    const renamed = task("b").replace("diamonds", "wage");
    const change = /^[^\n]* spec.tasks does not fit: tasks can be added, removed or renamed only while[^\n]*$/;
    assert.match(of([renamed], { before }), change);
    const suspended = parseTrainingRun(BASE, "old.yaml", [task("a"), "suspend=true"]);
    assert.equal(of([renamed, "suspend=true"], { before: suspended }), "");
  });
  test("about a change ignores the order of a TrainingRun's fields", () => {
    const set = (text: string): TrainingRun => parseTrainingRun(BASE, "old.yaml", [`model.adaptation={${text}}`]);
    const before = set("type: LoRA, rank: 4, targets: [q_proj, v_proj]");
    assert.equal(of(["model.adaptation={targets: [q_proj, v_proj], rank: 4, type: LoRA}"], { before }), "");
  });
});

describe("the CRD", () => {
  const schemas = new Map<string, Schema>();
  const collect = (schema: Schema, path: string): void => {
    schemas.set(path, schema);
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = path ? `${path}.${name}` : name;
      collect(property, at);
      if (property.items) collect(property.items, `${at}[]`);
    }
  };
  collect(readSchema(), "");

  test("blames fields that exist", () => {
    const blamed = RULES.map(({ at, field }) => [at, field].filter(Boolean).join("."));
    assert.deepEqual(
      blamed.filter((path) => !schemas.has(path)),
      [],
    );
  });
  test("says in a field's description that it cannot change, as kubectl explain shows no rules", () => {
    const fixed = RULES.filter(
      ({ when, at, message }) => when === "change" && at && message.includes("cannot change"),
    ).map(({ at, field }) => [at, field].filter(Boolean).join("."));
    const described = [...schemas]
      .filter(([, { description }]) => description?.startsWith("Cannot change."))
      .map(([path]) => path);
    assert.deepEqual(described.sort(), ["spec.tasks[].name", ...fixed].sort());
  });
  test("has at least 40 rules, each with a text of its own", () => {
    assert.ok(new Set(RULES.map(({ message }) => message)).size >= 40);
  });
  test("lists each rule that applies on Kubernetes alone", () => {
    const found = RULES.filter(({ when }) => when === "cluster").map(({ message }) => message);
    assert.deepEqual([...new Set(found)].sort(), [...CLUSTER_ONLY].sort());
  });
  test("says Forbidden where a change is refused, and only there", () => {
    for (const { message, when, reason } of RULES)
      assert.equal(reason === "FieldValueForbidden", when === "change", message);
  });
  test("knows the tasks of MLE-bench, which need no grader", () => {
    const { rule } = RULES.find(({ message }) => message.startsWith("a task with data of its own"))!;
    const names = [...rule.matchAll(/'([^']+)'/g)].map(([, name]) => name!);
    assert.deepEqual(names.sort(), [...MLE_BENCH_TASKS].sort());
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
  for (const [quantity, value] of cases)
    test(`reads ${quantity}`, () => {
      assert.equal(parseQuantity(quantity), value);
      assert.ok(isQuantity(String(quantity)));
    });
  for (const wrong of ["", "Gi", "1 Gi", "1gi", "-1", "1e3", "1.", "1Gi1"])
    test(`refuses "${wrong}"`, () => {
      assert.throws(() => parseQuantity(wrong), /RangeError.*is no quantity; write it as/);
      assert.ok(!isQuantity(wrong));
    });
});
