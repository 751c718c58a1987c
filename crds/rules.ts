/**
 * The CRD's rules (`x-kubernetes-validations`), for runs without a cluster and for checks before `kubectl apply`: the CEL that the
 * API server evaluates is evaluated here too. Tests compare both, case by case, on a real API server.
 */
import { Environment } from "@marcbachmann/cel-js";
import { formatPath, type Path } from "./overrides.ts";
import type { Problem } from "./problems.ts";
import { isQuantity, parseQuantity } from "./quantity.ts";
import type { Schema } from "./schema.ts";

export interface Rule {
  /** Path of the rule's subject; `[]` stands for every item of a list, the empty text for the whole manifest. */
  at: string;
  /** The condition, in CEL. */
  rule: string;
  /** The message without the value, which `messageExpression` adds. */
  message: string;
  /** For a rule about a text: the message with the text, in CEL. */
  messageExpression?: string | undefined;
  /** Path of the invalid field, below `at`. */
  field?: string | undefined;
  /**
   * Default `always`. `cluster`: only on Kubernetes. `change`: only for changes of an existing TrainingRun that has a value at the path
   * before and after the change.
   */
  when?: "cluster" | "change";
  reason?: string | undefined;
}

/** Messages of the rules that apply only on Kubernetes, where a path of this machine does not exist. */
export const CLUSTER_ONLY: readonly string[] = [
  "path works on one machine only; on Kubernetes give persistentVolumeClaim or image",
  "path works on one machine only; on Kubernetes give configMap, persistentVolumeClaim or image",
  "path works on one machine only; on Kubernetes give run",
  "model.policy is a folder, and on Kubernetes a folder lies on a volume; give model.volume, name a bundled policy such as quickstart, or give model.source instead",
  "learner.device CUDA needs a GPU; add nvidia.com/gpu: 1 or more, or one part of a GPU, to learner.resources.limits, or a claim of one to learner.resources.claims, or remove learner.resources if the cluster's default has one",
  "vLLM's image has none of longrun's policies: give the folder in model.policy and its volume in model.volume, or set generation.engine to Longrun",
  "model.source is fetched onto the run's own volume, which generators on other nodes cannot mount: put the model into an image or on a claim that several nodes can mount (ReadOnlyMany or ReadWriteMany), and give model.policy and model.volume",
];

export interface RuleOptions {
  /** Whether the rules for Kubernetes are checked too. */
  cluster?: boolean;
  /** The TrainingRun that the value replaces; without it no rule of change is checked. */
  before?: unknown;
}

/** Returns the rules of a schema and of its nested schemas. */
export function rulesOf(schema: Schema, at = ""): Rule[] {
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    rulesOf(property, at ? `${at}.${name}` : name),
  );
  const own = rulesAt(schema).map((rule) => ({ ...rule, at }));
  return [...own, ...below, ...(schema.items ? rulesOf(schema.items, `${at}[]`) : [])];
}

const known = new WeakMap<Schema, Omit<Rule, "at">[]>();

function rulesAt(schema: Schema): Omit<Rule, "at">[] {
  const rules =
    known.get(schema) ??
    (schema["x-kubernetes-validations"] ?? []).map(({ rule, message, messageExpression, fieldPath, reason }) => {
      const text = message ?? withoutValue(messageExpression!);
      const when = rule.includes("oldSelf") ? "change" : CLUSTER_ONLY.includes(text) ? "cluster" : undefined;
      return { rule, message: text, messageExpression, field: fieldPath?.slice(1), reason, ...(when && { when }) };
    });
  known.set(schema, rules);
  return rules;
}

/** Returns the text of a message expression without the value. A message has one line; otherwise the API server shows the rule. */
function withoutValue(expression: string): string {
  const [, text] = /^'(.*) [(]it is "' [+] self[.]replace[(]'\\n', ' '[)] [+] '"[)]'$/.exec(expression)!;
  return text!.replaceAll("\\'", "'");
}

/** @returns the broken rules of a value that the schema accepts */
export function brokenRules(value: unknown, schema: Schema, { cluster = false, before }: RuleOptions = {}): Problem[] {
  const problems: Problem[] = [];
  const walk = (at: Schema, self: unknown, oldSelf: unknown, path: Path): void => {
    if (self === undefined) return;
    for (const rule of rulesAt(at)) {
      if (rule.when === "cluster" && !cluster) continue;
      if (rule.when === "change" && oldSelf === undefined) continue;
      if (!evaluate(rule.rule, { self, oldSelf })) problems.push(problemOf(rule, self, path));
    }
    for (const [name, property] of Object.entries(at.properties ?? {}))
      walk(property, fieldOf(self, name), fieldOf(oldSelf, name), [...path, name]);
    if (!at.items || !Array.isArray(self)) return;
    for (const [index, item] of self.entries()) walk(at.items, item, sameItem(at, oldSelf, item), [...path, index]);
    problems.push(...repeatedKeys(at, self, path));
  };
  walk(schema, typed(value, schema), before === undefined ? undefined : typed(before, schema), []);
  return problems;
}

const fieldOf = (value: unknown, name: string): unknown => (value as Record<string, unknown> | undefined)?.[name];

/** Returns the item before a change that the API server matches with this item: in a list of type `map`, by its key. */
function sameItem(list: Schema, before: unknown, item: unknown): unknown {
  const keys = list["x-kubernetes-list-map-keys"] as string[] | undefined;
  if (!keys || !Array.isArray(before)) return undefined;
  return before.find((old) => keys.every((key) => fieldOf(old, key) === fieldOf(item, key)));
}

/** Returns a problem for each item of a list of type `map` that has the key of an earlier item. */
function repeatedKeys(list: Schema, items: unknown[], path: Path): Problem[] {
  const [key] = (list["x-kubernetes-list-map-keys"] as string[] | undefined) ?? [];
  if (key === undefined) return [];
  const keys = items.map((item) => fieldOf(item, key));
  return keys.flatMap((value, index) => {
    const first = keys.indexOf(value);
    if (first === index) return [];
    const text = `is ${JSON.stringify(value)}, like that of ${formatPath([...path, first])}; give each item another one`;
    return [{ path: [...path, index, key], text }];
  });
}

/** Returns the value with CEL's types: a whole number is BigInt, unless the field's type is `number`. */
function typed(value: unknown, schema: Schema): unknown {
  if (typeof value === "number") return schema.type === "number" || !Number.isInteger(value) ? value : BigInt(value);
  if (Array.isArray(value)) return value.map((item) => typed(item, schema.items ?? {}));
  if (typeof value !== "object" || value === null) return value;
  const fieldSchema = (name: string): Schema => schema.properties?.[name] ?? (schema.additionalProperties || {});
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, typed(field, fieldSchema(name))]));
}

class Quantity {
  readonly amount: number;

  constructor(text: string) {
    this.amount = parseQuantity(text);
  }
}

/** CEL with the Kubernetes functions that the rules use. https://kubernetes.io/docs/reference/using-api/cel/ */
const environment = new Environment({ unlistedVariablesAreDyn: true })
  .registerType("Quantity", Quantity)
  .registerFunction("quantity(string): Quantity", (text: string) => new Quantity(text))
  .registerFunction("isQuantity(string): bool", isQuantity)
  .registerFunction("Quantity.asApproximateFloat(): double", ({ amount }: Quantity) => amount)
  .registerFunction("Quantity.isLessThan(Quantity): bool", (a: Quantity, b: Quantity) => a.amount < b.amount)
  .registerFunction("Quantity.isGreaterThan(Quantity): bool", (a: Quantity, b: Quantity) => a.amount > b.amount)
  .registerFunction("Quantity.compareTo(Quantity): int", (a: Quantity, b: Quantity) =>
    BigInt(Math.sign(a.amount - b.amount)),
  )
  .registerFunction("string.replace(string, string): string", (text: string, from: string, to: string) =>
    text.replaceAll(from, to),
  );
const parsed = new Map<string, ReturnType<Environment["parse"]>>();

function evaluate(expression: string, values: { self: unknown; oldSelf?: unknown }): unknown {
  const program = parsed.get(expression) ?? environment.parse(expression);
  parsed.set(expression, program);
  return program(values);
}

/** Longest value in an error; a longer one, such as a whole task, would hide the message. */
const SHOWN_CHARACTERS = 100;

function problemOf(
  { rule, field, message, messageExpression, when }: Omit<Rule, "at">,
  self: unknown,
  path: Path,
): Problem {
  if (messageExpression) return { path, text: `does not fit: ${evaluate(messageExpression, { self })}` };
  const names = fieldsRead(rule);
  // CEL cannot name a field of metadata, because the schema leaves metadata to Kubernetes.
  const blamed = field ?? names.find((name) => name.startsWith("metadata."));
  const read = (name: string): unknown => name.split(".").reduce(fieldOf, self);
  const isTold = (name: string): boolean =>
    name !== blamed &&
    (typeof read(name) !== "object" || (when !== "change" && !names.some((it) => it.startsWith(`${name}.`))));
  const values = (blamed === undefined ? [] : [blamed, ...names.filter(isTold)]).map((name) => ({
    name,
    value: read(name),
  }));
  if (typeof self !== "object") values.push({ name: "it", value: self });
  const shown = values
    .filter(({ value }) => value !== undefined)
    .map(({ name, value }) => `${name} is ${JSON.stringify(value, withoutBigInt)}`)
    .filter((text) => text.length <= SHOWN_CHARACTERS)
    .join(", ");
  return {
    path: [...path, ...(blamed?.split(".") ?? [])],
    text: `does not fit: ${message}${shown ? ` (${shown})` : ""}`,
  };
}

const withoutBigInt = (_: string, value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/** Returns the fields of `self` whose values a rule reads, such as `actors.min`. */
function fieldsRead(rule: string): string[] {
  const read = [...rule.matchAll(/\bself[.]([\w.]+)([(]?)/g)].map(([, names, call]) =>
    call ? names!.replace(/[.]?\w+$/, "") : names!,
  );
  return [...new Set(read)].filter(Boolean);
}
