import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { announcements, clip, EVENTS, eventOf, REASONS, stamp } from "./conditions.ts";

/** Returns the first cells of the tables below a heading of README.md, up to the next section. */
function namesUnder(heading: string): Set<string> {
  const text = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const section = text.split(`\n### ${heading}\n`)[1]!.split("\n### ")[0]!;
  const cells = [...section.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!);
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)));
}

test("README.md explains every reason of a condition, and no other reason", () =>
  assert.deepEqual([...namesUnder("Conditions")].sort(), Object.keys(REASONS).sort()));

test("README.md explains every event that no condition reports, and no other event", () =>
  assert.deepEqual([...namesUnder("Events")].sort(), Object.keys(EVENTS).sort()));

test("clip cuts a long message to the schema's limit, never within a character", () => {
  assert.equal(clip("x".repeat(2000)).length, 1024);
  for (const text of ["😀".repeat(600), `x${"😀".repeat(600)}`]) assert.ok(clip(text).isWellFormed());
});

describe("stamp and announcements", () => {
  const condition = (status: "True" | "False", reason: string, message = "m") => ({
    type: "Ready" as const,
    status,
    reason: reason as never,
    message,
  });
  const old = stamp([condition("False", "Unschedulable", "a")], [], { generation: 1, now: "then" });

  test("lastTransitionTime changes only with the status", () => {
    assert.equal(
      stamp([condition("False", "Starting")], old, { generation: 2, now: "now" })[0]!.lastTransitionTime,
      "then",
    );
    assert.equal(
      stamp([condition("True", "Training")], old, { generation: 2, now: "now" })[0]!.lastTransitionTime,
      "now",
    );
  });

  test("A new spec starts the time again after which a run that reconciles is stalled", () => {
    const reconciling = [{ ...condition("True", "Unschedulable"), type: "Reconciling" as const }] as Parameters<
      typeof stamp
    >[0];
    const first = stamp(reconciling, [], { generation: 1, now: "then" });
    const [same] = stamp(reconciling, first, { generation: 1, now: "now" });
    const [edited] = stamp(reconciling, first, { generation: 2, now: "now" });
    assert.deepEqual([same!.lastTransitionTime, edited!.lastTransitionTime], ["then", "now"]);
  });

  const CASES: [what: string, after: ReturnType<typeof condition>[], expected: string[]][] = [
    ["the same", [condition("False", "Unschedulable", "a")], []],
    ["another blocker", [condition("False", "ImagePullFailed")], ["Warning ImagePullFailed"]],
    ["the same blocker in other words", [condition("False", "Unschedulable", "b")], ["Warning Unschedulable"]],
    ["what nobody asks about", [condition("True", "Training")], []],
    [
      "two conditions with one cause",
      [condition("False", "ImagePullFailed"), condition("False", "ImagePullFailed")],
      ["Warning ImagePullFailed"],
    ],
  ];
  for (const [what, after, expected] of CASES)
    test(what, () =>
      assert.deepEqual(
        announcements(after as never, old).map(({ reason }) => `${eventOf(reason).type} ${reason}`),
        expected,
      ),
    );
});
