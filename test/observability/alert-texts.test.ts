/** The alerts' cases quote the rules' texts; promtool compares them only where it is installed. */
import assert from "node:assert/strict";
import test from "node:test";
import { ALERT_CASES } from "./alert-cases.ts";
import { RULES } from "./rules.ts";

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
    const { annotations } = RULES.get(alert)!;
    assert.match(fires!.summary, pattern(annotations.summary));
    if (fires!.description !== undefined) assert.match(fires!.description.trim(), pattern(annotations.description));
  });
