import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import { childKinds } from "../caches.ts";
import { ApiError } from "../kube/errors.ts";
import { LEASE, WORKLOAD } from "../kube/resources.ts";
import type { AnyPart } from "../part.ts";
import { takingCluster } from "../reconcile.fixture.ts";
import { runOf } from "../run.fixture.ts";
import { type ConditionType, findCondition } from "../status/conditions.ts";
import { PARTS } from "./index.ts";
import { toyOf } from "./toy.fixture.ts";

/** Returns the fields that a part needs and that no earlier part gives. */
function missing(parts: readonly AnyPart[]): string[] {
  const given = new Set<string>();
  return parts.flatMap(({ name, needs = [], gives = [] }) => {
    const unknown = needs.filter((field) => !given.has(field)).map((field) => `${name}: ${field}`);
    for (const field of gives) given.add(field);
    return unknown;
  });
}

test("Earlier parts give what each part needs, and every part has its own name", () => {
  assert.deepEqual(missing(PARTS), []);
  assert.ok(missing(PARTS.toReversed()).length > 10);
  assert.equal(new Set(PARTS.map(({ name }) => name)).size, PARTS.length);
});

test("The caches watch the kinds of all parts, and the Workload with Kueue alone", () => {
  const toy = toyOf();
  assert.ok(!childKinds({}).includes(LEASE));
  assert.ok(childKinds({}, [...PARTS, toy]).includes(LEASE));
  assert.deepEqual(
    [childKinds({}), childKinds({ kueue: true })].map((kinds) => kinds.includes(WORKLOAD)),
    [false, true],
  );
});

/** Looks twice at a run with the toy child. */
async function lookTwice(isRefused: boolean) {
  const run = runOf({ learner: { storage: { retain: "Never" } } });
  const cluster = takingCluster(run, {}, { parts: [...PARTS, toyOf(isRefused)] });
  const again = [await cluster.lookAt(0), await cluster.lookAt(60)].map((it) => it.requeueAfterSeconds ?? 0);
  const leases = cluster.applied.filter(({ kind }) => kind === "Lease");
  const statuses = cluster.applied.flatMap(({ object }) => (object as { status?: TrainingRunStatus }).status ?? []);
  const conditionOf = (type: string) => {
    const found = findCondition(statuses.at(-1)!.conditions, type as ConditionType);
    return found && `${found.status} ${found.reason} ${found.message}`;
  };
  return { again, leases, conditionOf };
}

test("A toy child needs its file and one line in the list: its object, memory, condition and time", async () => {
  const { again, leases, conditionOf } = await lookTwice(false);
  const transitions = leases.map(({ object }) => (object as { spec?: { leaseTransitions: number } }).spec);
  assert.deepEqual(transitions, [{ leaseTransitions: 1 }, { leaseTransitions: 2 }]);
  assert.equal(leases[0]!.object.metadata.name, "quick-toy");
  assert.equal(conditionOf("Toy"), "True AsDesired 2");
  assert.ok(
    again.every((seconds) => seconds <= 7),
    String(again),
  );
});

test("A toy child that is refused makes the run unready, and the other children are written", async () => {
  const { leases, conditionOf } = await lookTwice(true);
  assert.equal(leases.length, 0);
  assert.equal(conditionOf("Toy"), "False Forbidden no toys here");
  assert.match(conditionOf("Ready")!, /^False Forbidden no toys here/);
  assert.match(conditionOf("ObjectsApplied")!, /^False Forbidden/);
});

test("After an error that a retry may resolve the other children are tried, but no later part; then the reconcile fails", async () => {
  const tried: string[] = [];
  const partOf = (name: string, rest: Partial<AnyPart> = {}): AnyPart => ({
    ...{ name, isChild: true },
    async reconcile() {
      tried.push(name);
      return {};
    },
    ...rest,
  });
  const error = new ApiError("the API server is busy", { status: 500, reason: "InternalError" });
  const failing = partOf("failing", { reconcile: async () => ({ error }) });
  const added = [failing, partOf("child"), partOf("later", { isChild: false })];
  const { lookAt } = takingCluster(
    runOf({ learner: { storage: { retain: "Never" } } }),
    {},
    { parts: [...PARTS, ...added] },
  );
  await assert.rejects(lookAt(0), error);
  assert.deepEqual(tried, ["child"]);
});
