import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Context, type Look, settle } from "./context.ts";
import { ApiError } from "./kube/errors.ts";
import { runOf } from "./run.fixture.ts";
import { tryAll, tryStep } from "./steps.ts";
import { BlockedError } from "./writes/refusals.ts";

const run = runOf();
const failed = (status: number) => new ApiError(`status ${status}`, { status, reason: "Test" });
const blocked = () => new BlockedError("NameTaken", "the name is taken");

/** Returns a look and the effects of its calls: `woken` counts calls that returned. */
function looking() {
  const happened: string[] = [];
  const context = {
    wake: () => happened.push("woken"),
    log: { warn: (_: object, message: string) => happened.push(message) },
  } as unknown as Context;
  const memory: { forceDeleted?: string } = {};
  const calls = new Set<string>();
  const look = { key: "team/quick", memory, calls, context } as unknown as Look<typeof memory>;
  return { look, memory, calls, happened };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("The result of a step", () => {
  test("The memory is kept before the call begins, and the error comes last", () => {
    const { look, memory } = looking();
    let seen: string | undefined;
    const work = async () => {
      seen = memory.forceDeleted;
      return {};
    };
    const error = failed(500);
    assert.throws(
      () => settle(look, { remember: { forceDeleted: "pod" }, call: { kind: "suspend", work }, error }),
      error,
    );
    assert.equal(seen, "pod");
  });

  test("A call changes the memory when it returns, and the run is reconciled again", async () => {
    const { look, memory, calls, happened } = looking();
    settle(look, { call: { kind: "suspend", work: async () => ({ forceDeleted: "pod" }) } });
    assert.deepEqual([memory.forceDeleted, [...calls]], [undefined, ["suspend"]]);
    await settled();
    assert.deepEqual([memory.forceDeleted, [...calls], happened], ["pod", [], ["woken"]]);
  });

  test("One call of a kind runs at a time, and another begins after it has failed", async () => {
    const { look, calls, happened } = looking();
    let begun = 0;
    const call = {
      kind: "suspend",
      work: async () => {
        begun++;
        throw new Error("the learner is gone");
      },
    };
    for (let times = 0; times < 3; times++) settle(look, { call });
    settle(look, { call: { ...call, kind: "drainActors" } });
    assert.equal(begun, 2);
    await settled();
    assert.deepEqual([[...calls], happened.filter((it) => it === "woken").length], [[], 2]);
    settle(look, { call });
    assert.equal(begun, 3);
  });
});

describe("An error of a step", () => {
  test("An error that a person must mend is a finding; the step's memory stays", async () => {
    const thrown = await tryStep(run, () => Promise.reject(blocked()));
    const remember = { forceDeleted: "pod" };
    const returned = await tryStep(run, async () => ({ remember, error: blocked() }));
    const refused = { reason: "NameTaken", message: "the name is taken" };
    assert.deepEqual([thrown, returned], [{ refused }, { refused, remember }]);
  });

  test("An error that a repetition may mend is thrown", async () => {
    const error = failed(500);
    await assert.rejects(
      tryStep(run, () => Promise.reject(error)),
      error,
    );
    assert.deepEqual(await tryStep(run, async () => ({ error })), { error });
  });
});

describe("steps that do not depend on one another", () => {
  test("All of them are tried; the first refusal and the first error count", async () => {
    const first = failed(500);
    let tried = 0;
    const failing = (error: Error) => async () => {
      tried++;
      throw error;
    };
    const other = new BlockedError("NameTaken", "another name is taken");
    const found = await tryAll(run, failing(first), failing(blocked()), failing(failed(500)), failing(other));
    assert.deepEqual([tried, found.failed, found.refused?.message], [4, true, "the name is taken"]);
    assert.equal(found.error, first);
    assert.deepEqual(await tryAll(run, async () => {}), { failed: false, refused: undefined, error: undefined });
  });

  for (const [what, error] of [
    ["too many requests", failed(429)],
    ["no connection", new Error("ECONNREFUSED")],
  ] as const)
    test(`They end at once where the API server does not answer: ${what}`, async () => {
      const next = async () => assert.fail("the next step waits just as long");
      await assert.rejects(
        tryAll(run, () => Promise.reject(error), next),
        error,
      );
    });
});
