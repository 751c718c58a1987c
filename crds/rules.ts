/**
 * Rules that a schema cannot state. On Kubernetes the API server enforces them as CEL (`x-kubernetes-validations` in the
 * CRD); here they are once more, for runs without a cluster and for checks before `kubectl apply`. Tests keep the two
 * equal: by their texts, and case by case against a real API server.
 */
import { CHANGE_RULES } from "./rules-change.ts";
import { FIT_RULES } from "./rules-fit.ts";
import { FORM_RULES } from "./rules-form.ts";
import { POD_RULES } from "./rules-pods.ts";

export interface Rule {
  /** Path of what the rule looks at; `[]` stands for every item of a list, the empty text for the whole manifest. */
  at: string;
  /** Fields below it whose values an error shows; the first one gives the line, and CEL's `fieldPath`. */
  fields: string[];
  message: string;
  /**
   * `always` where nothing is said. `cluster`: only on Kubernetes. `change`: only when a TrainingRun that exists is
   * changed, and where the path led to something before and does so after it.
   */
  when?: "cluster" | "change";
  /** `before` is what stood there, with `change` alone. */
  holds(object: never, before: never): boolean;
}

export const RULES: Rule[] = [...FORM_RULES, ...FIT_RULES, ...POD_RULES, ...CHANGE_RULES];

export interface BrokenRule {
  rule: Rule;
  /** Path of the object, e.g. `['spec', 'tasks', 0]`. */
  path: (string | number)[];
  object: unknown;
}

export interface RuleOptions {
  /** [all] */
  rules?: Rule[];
  /** Whether the rules that hold on Kubernetes alone are checked too. */
  cluster?: boolean;
  /** The TrainingRun that the value replaces; without it no rule of change is checked. */
  before?: unknown;
}

/** Checks a value that the schema accepts; @returns the rules that do not hold. */
export function brokenRules(
  value: unknown,
  { rules = RULES, cluster = false, before }: RuleOptions = {},
): BrokenRule[] {
  return rules.flatMap((rule) => {
    if (rule.when === "cluster" && !cluster) return [];
    const places = placesAt(value, rule.at);
    if (rule.when !== "change")
      return places.filter(({ object }) => !rule.holds(object as never, undefined as never)).map(broken(rule));
    const earlier = new Map(placesAt(before, rule.at).map(({ key, object }) => [key, object]));
    return places
      .filter(({ key, object }) => earlier.has(key) && !rule.holds(object as never, earlier.get(key) as never))
      .map(broken(rule));
  });
}

const broken =
  (rule: Rule) =>
  ({ path, object }: Place): BrokenRule => ({ rule, path, object });

interface Place {
  object: unknown;
  path: (string | number)[];
  /** The path with an item's name for its index, as the API server finds an item again after a change. */
  key: string;
}

function placesAt(value: unknown, at: string): Place[] {
  let places: Place[] = [{ object: value, path: [], key: "" }];
  for (const segment of at === "" ? [] : at.split(".")) {
    const name = segment.replace("[]", "");
    places = places.flatMap(({ object, path, key }) => {
      const child = (object as Record<string, unknown>)?.[name];
      const place = { object: child, path: [...path, name], key: `${key}.${name}` };
      return segment.endsWith("[]") ? itemsOf(place) : [place];
    });
  }
  return places.filter(({ object }) => object !== undefined);
}

function itemsOf({ object, path, key }: Place): Place[] {
  return ((object ?? []) as { name?: string }[]).map((item, index) => ({
    object: item,
    path: [...path, index],
    key: `${key}[${item.name ?? index}]`,
  }));
}
