/** The alerts' cases quote the rules' texts; promtool compares them only where it is installed. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { parse } from "yaml";
import { CHART } from "../../charts/observability/generate.ts";
import { ALERT_CASES } from "./alert-cases.ts";

interface Rule {
  alert: string;
  annotations: { summary: string; description: string };
}

const rules = readdirSync(`${CHART}alerts`)
  .flatMap((file): { rules: Rule[] }[] => parse(readFileSync(`${CHART}alerts/${file}`, "utf8")).groups)
  .flatMap((group) => group.rules);

/** Matches a template's text with anything in place of `{{…}}`. */
const pattern = (template: string) =>
  new RegExp(
    `^${template
      .trim()
      .split(/\{\{.*?\}\}/s)
      .map(RegExp.escape)
      .join(".*")}$`,
    "s",
  );

for (const { alert, when, fires } of ALERT_CASES.filter((it) => it.fires))
  test(`The case of ${alert} "${when}" quotes the rule's summary and description`, () => {
    const { annotations } = rules.find((rule) => rule.alert === alert)!;
    assert.match(fires!.summary, pattern(annotations.summary));
    if (fires!.description !== undefined) assert.match(fires!.description.trim(), pattern(annotations.description));
  });
