import assert from "node:assert/strict";
import { test } from "node:test";
import { dividedRules, seconds } from "./alert-rules.ts";
import { type Facts, type Firing, judge } from "./alerts.ts";

const rules = dividedRules().groups.flatMap((group) => group.rules);
const WAITS = Object.fromEntries(rules.map((rule) => [rule.alert, seconds(rule.for)]));
const READY = { name: "learner-1", ready: true, due: true, ends: 0 };
const DOWN = { ...READY, ready: false };
const ALL_WELL: Omit<Facts, "atMs"> = {
  ...{ troubles: [], leader: "controller-1", learner: READY, actors: { pending: 0, running: 2, max: 2 }, free: 0.9 },
  sinceIterationSeconds: 5,
};

/** Returns the facts of each second: for every part, `count` seconds of a healthy run with `change` applied. */
function facts(...parts: [count: number, change: Partial<Facts>][]): Facts[] {
  const changes = parts.flatMap(([count, change]) => Array.from({ length: count }, () => change));
  return changes.map((change, second) => ({ ...ALL_WELL, ...change, atMs: second * 1000 }));
}

const fired = (alert: string, from: number, to: number): Firing => ({ alert, fromMs: from * 1000, toMs: to * 1000 });
const judged = (all: Facts[], firings: Firing[], isScraped = (_pod: string, _atMs: number) => true) =>
  judge(all, firings, WAITS, isScraped).findings.map((finding) => finding.replace(/ fired.*| did not.*/, ""));

test("The rules for chaos runs divide the durations of the chart's rules, and change nothing else", () => {
  const rule = (name: string) => rules.find(({ alert }) => alert === name)!;
  assert.equal(WAITS.LongrunLearnerDown, 90);
  assert.equal(WAITS.LongrunLearnerFailing, 0);
  assert.equal(rule("LongrunLearnerDown").expr, "max by (namespace, run) (longrun_run_learner_available) == 0");
  assert.equal(rule("LongrunNoProgress").expr, "time() - longrun_progress_timestamp_seconds > 360");
  assert.match(rule("LongrunExecutionsLost").expr, /event="lost"}\[360s\]\)\) > 2\.5/);
  assert.match(rule("LongrunCheckpointOld").expr, /> 6 \* 360 and/);
});

test("An alert for a true state, and silence for a false one, give no finding", () => {
  const all = facts([100, {}], [150, { learner: DOWN }], [100, {}]);
  assert.deepEqual(judged(all, [fired("LongrunLearnerDown", 200, 260)]), []);
  assert.deepEqual(judged(facts([600, {}]), []), []);
  assert.deepEqual(
    [all, facts([600, {}])].map((of) => judge(of, [], WAITS, () => true).due),
    [1, 0],
  );
});

test("An alert for a state that has not lasted for the rule's time is a false alert", () => {
  const all = facts([100, {}], [10, { learner: DOWN }], [100, {}]);
  assert.deepEqual(
    judged(all, [fired("LongrunLearnerDown", 112, 112)]),
    ["false alert: LongrunLearnerDown"],
    "too early",
  );
  const long = facts([200, { learner: DOWN }], [100, {}]);
  assert.deepEqual(
    judged(long, [fired("LongrunLearnerDown", 110, 299)]),
    ["false alert: LongrunLearnerDown"],
    "too long",
  );
  const others = [
    "LongrunNoLeader",
    "LongrunActorsStuck",
    "LongrunNoProgress",
    "LongrunLearnerFailing",
    "LongrunDiskNearlyFull",
  ];
  for (const alert of others)
    assert.deepEqual(judged(facts([400, {}]), [fired(alert, 300, 399)]), [`false alert: ${alert}`]);
});

test("A state that lasts for the rule's time without an alert is a missing alert", () => {
  assert.deepEqual(judged(facts([140, { learner: DOWN }]), []), ["missing alert: LongrunLearnerDown"]);
  assert.deepEqual(judged(facts([60, { leader: "" }]), []), ["missing alert: LongrunNoLeader"]);
  assert.deepEqual(judged(facts([140, { actors: { pending: 1, running: 1, max: 2 } }]), []), [
    "missing alert: LongrunActorsStuck",
  ]);
  assert.deepEqual(judged(facts([60, { free: 0.05 }]), []), ["missing alert: LongrunDiskNearlyFull"]);
});

test("A state that nobody could see, or that a trouble explains, gives no finding", () => {
  const down = facts([300, { learner: DOWN }]);
  assert.deepEqual(
    judged(down, [], (_, atMs) => atMs % 60_000 !== 0),
    [],
    "Prometheus did not reach the leader",
  );
  const changes = facts([80, { learner: DOWN }], [80, { learner: DOWN, leader: "controller-2" }]);
  assert.deepEqual(judged(changes, []), [], "each leader counts from zero");
  assert.deepEqual(
    judged(
      down.filter(({ atMs }) => atMs % 60_000 > 10_000),
      [],
    ),
    [],
    "the API server did not answer",
  );
  const cut = facts([200, { troubles: ["network cut controller - learner"] }]);
  assert.deepEqual(judged(cut, [fired("LongrunLearnerDown", 100, 199)]), []);
  const blind = facts([300, { learner: DOWN, troubles: ["watches stall: 3 watches"] }]);
  assert.deepEqual(judged(blind, []), [], "the controller does not know that the run was resumed");
});

test("An alert whose state cannot be observed needs a trouble that explains it", () => {
  const firing = [fired("LongrunReconcileErrors", 100, 120)];
  assert.deepEqual(judged(facts([130, {}]), firing), ["false alert: LongrunReconcileErrors"]);
  assert.deepEqual(judged(facts([130, { troubles: ["API server answers 500: 12 requests"] }]), firing), []);
  assert.deepEqual(judged(facts([130, {}]), [fired("LongrunEntropyCollapsed", 100, 120)]), [], "left out");
  assert.deepEqual(judged(facts([130, {}]), [fired("LongrunCheckpointOld", 100, 120)]), [
    "false alert: LongrunCheckpointOld",
  ]);
});
