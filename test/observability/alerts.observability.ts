/** Tests the alerts with the real promtool: `check rules`, and `test rules` on cases that fire and cases that do not. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { stringify } from "yaml";
import { MONITORING, missingBinaries } from "../cluster/binaries.ts";
import { ALERT_CASES, type AlertCase } from "./alert-cases.ts";
import { promtool } from "./prometheus.ts";
import { RULE_FILES, RULES } from "./rules.ts";

describe("alerts", { skip: missingBinaries(MONITORING) ?? false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "longrun-alerts-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  test("promtool accepts the rules", () => {
    const { status, output } = promtool(["check", "rules", "--lint=all", "--lint-fatal", ...RULE_FILES]);
    assert.equal(status, 0, output);
  });

  for (const alert of RULES.keys())
    test(`${alert} fires when it should, and at no other time`, () => {
      const cases = ALERT_CASES.filter((it) => it.alert === alert);
      assert.ok(
        cases.some(({ fires }) => fires) && cases.some(({ fires }) => !fires),
        "each alert has a firing and a silent case",
      );
      const tests = cases.map((it, index) => {
        const file = join(folder, `${alert}, ${index + 1}: ${it.when}.yaml`);
        writeFileSync(file, stringify(ruleTest(it)));
        return file;
      });
      const { status, output } = promtool(["test", "rules", ...tests]);
      assert.equal(status, 0, output);
    });
});

/** https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/ */
function ruleTest({ alert, series, at, fires }: AlertCase): object {
  const rule = RULES.get(alert);
  assert.ok(rule, `there is no alert ${alert}`);
  const { summary, description = rule.annotations.description } = fires ?? {};
  const expected = fires && {
    exp_labels: { ...rule.labels, ...fires.labels },
    exp_annotations: { summary, description },
  };
  return {
    rule_files: RULE_FILES,
    evaluation_interval: "1m",
    tests: [
      {
        interval: "1m",
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: [{ eval_time: `${at}m`, alertname: alert, exp_alerts: expected ? [expected] : [] }],
      },
    ],
  };
}
