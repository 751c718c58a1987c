import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../kube/errors.ts";
import { at, NOW_MS, runOf } from "../run.fixture.ts";
import type { Writes } from "../writes/writes.ts";
import { CLAIM, Claims, CONTENDER, contendedCondition, contendedSeconds } from "./claims.ts";

const ME = "me/longrun-controller";
const OTHER = "other/longrun-controller";

/** Returns what a controller makes of a run with these annotations, and the annotations that it writes. */
async function take(
  annotations: Record<string, string>,
  { lease, identity = ME }: { lease?: number | ApiError; identity?: string | undefined } = {},
) {
  const get = async () => {
    if (lease instanceof ApiError) throw lease;
    return lease === undefined ? undefined : ({ spec: { renewTime: at(-lease) } } as never);
  };
  const written: object[] = [];
  const patch = async (_: unknown, __: unknown, { metadata }: { metadata: { annotations: object } }) =>
    written.push(metadata.annotations);
  const claims = new Claims({ client: { get }, identity: identity || undefined, now: () => NOW_MS });
  const run = runOf();
  run.metadata.annotations = annotations;
  return [await claims.take(run, { patch } as unknown as Writes), ...written];
}

test("A controller takes a run that nobody has, keeps its own, and leaves another's alone while that one lives", async () => {
  const leave = (first: boolean) => ({ leave: OTHER, first, againSeconds: 60 });
  assert.deepEqual(await take({}), ["written", { [CLAIM]: ME, [CONTENDER]: null }]);
  assert.deepEqual(await take({ [CLAIM]: ME }), ["ours"]);
  const contender = `${ME} ${at(0)}`;
  assert.deepEqual(await take({ [CLAIM]: OTHER }, { lease: 299 }), [
    leave(true),
    { [CONTENDER]: contender.replace("00Z", "00.000Z") },
  ]);
  assert.deepEqual(await take({ [CLAIM]: OTHER, [CONTENDER]: contender }, { lease: 299 }), [leave(false)]);
});

test("A claim passes on when its Lease is old or gone, or is no claim, but not when nobody can tell", async () => {
  const taken = ["written", { [CLAIM]: ME, [CONTENDER]: null }];
  assert.deepEqual(await take({ [CLAIM]: OTHER }, { lease: 301 }), taken);
  assert.deepEqual(await take({ [CLAIM]: OTHER }), taken);
  for (const claim of ["", "a", "/longrun-controller", "a/b", "a/longrun-controller/c"])
    assert.deepEqual(await take({ [CLAIM]: claim }, { lease: 0 }), taken, claim);
  const forbidden = new ApiError("no", { status: 403, reason: "Forbidden" });
  const [left] = await take({ [CLAIM]: OTHER }, { lease: forbidden });
  assert.deepEqual(left, { leave: OTHER, first: true, againSeconds: 60 });
  const failed = new ApiError("no", { status: 500, reason: "InternalError" });
  await assert.rejects(take({ [CLAIM]: OTHER }, { lease: failed }), failed);
});

test("A controller without a Lease claims nothing, and respects claims", async () => {
  assert.deepEqual(await take({}, { identity: "" }), ["ours"]);
  assert.deepEqual((await take({ [CLAIM]: OTHER }, { lease: 1, identity: "" }))[0], {
    leave: OTHER,
    first: true,
    againSeconds: 60,
  });
  assert.deepEqual(await take({ [CLAIM]: OTHER }, { lease: 999, identity: "" }), ["ours"]);
  const contended = { [CLAIM]: OTHER, [CONTENDER]: `without-a-Lease ${at(0)}` };
  const [taken, written] = await take(contended, { lease: 999, identity: "" });
  assert.deepEqual([taken, written], ["written", { [CONTENDER]: null }], "nobody contends any more");
});

test("The holder names the other controller for ten minutes after that one's last word", async () => {
  const contended = (seconds: number) => ({ [CLAIM]: ME, [CONTENDER]: `${OTHER} ${at(-seconds)}` });
  assert.deepEqual(await take(contended(599)), ["ours"]);
  assert.deepEqual(await take(contended(600)), ["written", { [CONTENDER]: null }]);
  assert.deepEqual(await take({ [CLAIM]: ME, [CONTENDER]: "x" }), ["written", { [CONTENDER]: null }]);
  const run = runOf();
  assert.deepEqual(contendedCondition(run), []);
  run.metadata.annotations = contended(1);
  assert.match(contendedCondition(run)[0]!.message!, /^controller other\/longrun-controller serves .* to me\/longrun-/);
});

test("A controller that leaves a run alone renews its word before the condition ends, and no other's", async () => {
  const other = (seconds: number, name = ME) => ({ [CLAIM]: OTHER, [CONTENDER]: `${name} ${at(-seconds)}` });
  const left = { leave: OTHER, first: false, againSeconds: 60 };
  assert.deepEqual(await take(other(299), { lease: 1 }), [left]);
  assert.deepEqual(await take(other(300), { lease: 1 }), [
    left,
    { [CONTENDER]: `${ME} ${at(0).replace("00Z", "00.000Z")}` },
  ]);
  assert.deepEqual(await take(other(300, "third/longrun-controller"), { lease: 1 }), [left]);
  const run = runOf();
  assert.equal(contendedSeconds(run, NOW_MS), undefined);
  run.metadata.annotations = other(590);
  assert.deepEqual([contendedSeconds(run, NOW_MS), contendedSeconds(run, NOW_MS + 10_000)], [10, undefined]);
});

test("A run that is given up keeps neither the claim nor the finalizer of this controller", async () => {
  const claims = new Claims({ client: { get: async () => undefined }, identity: ME, now: () => NOW_MS });
  const released = async (metadata: object) => {
    const patches: unknown[] = [];
    const writes = { patch: async (_: unknown, __: unknown, patch: unknown) => patches.push(patch) };
    await claims.release(runOf({}, {}, metadata), writes as unknown as Writes, "own");
    return patches;
  };
  const annotations = { [CLAIM]: null };
  assert.deepEqual(await released({ annotations: { [CLAIM]: ME }, finalizers: ["own", "b"] }), [
    { metadata: { annotations, finalizers: ["b"] } },
  ]);
  assert.deepEqual(await released({ annotations: { [CLAIM]: ME }, finalizers: ["b"] }), [
    { metadata: { annotations } },
  ]);
  assert.deepEqual(await released({ annotations: { [CLAIM]: OTHER }, finalizers: ["own"] }), []);
});

test("A class selects its own runs alone", () => {
  const serves = (controllerClass: string | undefined, spec: object) => {
    const claims = new Claims({ client: { get: async () => undefined }, identity: ME, controllerClass, now: Date.now });
    return claims.serves(runOf(spec));
  };
  assert.deepEqual(
    [serves(undefined, {}), serves("", {}), serves("a", {}), serves("a", { controllerClass: "a" })],
    [true, true, false, true],
  );
  assert.equal(serves(undefined, { controllerClass: "a" }), false);
});
