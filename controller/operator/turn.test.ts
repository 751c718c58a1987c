import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Look } from "./context.ts";
import { Memories } from "./memory.ts";
import type { AnyPart, Done, Sum } from "./part.ts";
import { NOW_MS, runOf } from "./run.fixture.ts";
import { Turn } from "./turn.ts";

describe("The time of the next reconcile", () => {
  const secondsUntil = (renewAtMs: number) => {
    const part = {
      name: "certificates",
      report: () => ({ certificates: [{ renewAtMs, expireAtMs: renewAtMs }] }),
    } as unknown as AnyPart;
    const memory = new Memories().of("team/quick", runOf());
    const turn = new Turn(part, { memory, nowMs: NOW_MS, context: { now: () => NOW_MS } } as unknown as Look<
      typeof memory
    >);
    turn.report({} as Done & Sum, undefined);
    return turn.again;
  };

  test("A certificate is renewed in time", () => assert.deepEqual(secondsUntil(NOW_MS + 60_000), [60]));

  // A run that has ended, or that its runtime refuses, renews none: it would be reconciled ten times a second.
  test("A certificate that this reconcile did not renew sets no time", () =>
    assert.deepEqual(secondsUntil(NOW_MS - 60_000), []));
});
