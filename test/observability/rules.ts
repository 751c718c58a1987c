/** The chart's alerts. */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { CHART } from "../../charts/observability/generate.ts";

export interface Rule {
  alert: string;
  labels: Record<string, string>;
  annotations: { summary: string; description: string };
}

export const RULE_FILES = readdirSync(`${CHART}alerts`).map((file) => `${CHART}alerts/${file}`);

/** Rules by the names of their alerts. */
export const RULES: ReadonlyMap<string, Rule> = new Map(
  RULE_FILES.flatMap((file): { rules: Rule[] }[] => parse(readFileSync(file, "utf8")).groups)
    .flatMap((group) => group.rules)
    .map((rule): [string, Rule] => [rule.alert, rule]),
);
