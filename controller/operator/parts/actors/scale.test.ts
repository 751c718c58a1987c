import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { messages } from "../../../../proto/service.ts";
import { DRAINING } from "../../desired/names.ts";
import type { ObservedActor } from "../../observe.ts";
import { actorOf, at, linkOf, NOW_MS, observedOf, runOf } from "../../run.fixture.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import { Stabiliser } from "./autoscale.ts";
import { demandOf, describeScaling, drainSeconds, isDraining, planActors } from "./scale.ts";

const { Phase } = messages;
const says = (queued: number, running = 0, phase = Phase.EXECUTING) =>
  linkOf({ phase, executions: { queued, running } });
const plan = (
  actors: ObservedActor[],
  { queued = 0, running = 0, spec = {}, stage = "Running" as Stage, link = says(queued, running), status = {} },
) =>
  planActors(
    observedOf(runOf({ actors: { min: 0, max: 10, scaleDownSeconds: 0, ...spec } }, status), { actors, link }),
    {
      stage,
      stabiliser: new Stabiliser(0),
      hash: "now",
      nowMs: NOW_MS,
    },
  );
const RUN = runOf();
const actors = (...changes: Parameters<typeof actorOf>[2][]) =>
  changes.map((change, index) => actorOf(RUN, index, change));
const draining = (seconds: number) => {
  const { metadata } = actorOf(RUN, 0).job;
  return { job: { metadata: { ...metadata, annotations: { [DRAINING]: `${at(seconds)} fewer` } } } };
};
const summary = (made: ReturnType<typeof plan>) => ({
  create: made.create.map(({ index, generation }) => `${index}-${generation}`),
  drain: made.drain.map(({ actor }) => actor.index),
  remove: made.remove.map(({ actor }) => actor.index),
});

const failed = (secondsAgo: number, generation = 0): Parameters<typeof actorOf>[2] => {
  const { metadata } = actorOf(RUN, 0).job;
  const conditions = [{ type: "Failed", status: "True", lastTransitionTime: at(-secondsAgo) }];
  return {
    state: "failed",
    generation,
    job: { metadata: { ...metadata, creationTimestamp: at(-secondsAgo - 2) }, status: { conditions } },
  };
};

/** The actor's pod was evicted, or its node is lost. */
const disrupted = (secondsAgo: number, livedSeconds: number): Parameters<typeof actorOf>[2] => {
  const { metadata } = actorOf(RUN, 0).job;
  const message = "Pod team/p has condition DisruptionTarget matching FailJob rule at index 0";
  const conditions = [{ type: "Failed", status: "True", lastTransitionTime: at(-secondsAgo), message }];
  const creationTimestamp = at(-secondsAgo - livedSeconds);
  return { state: "failed", job: { metadata: { ...metadata, creationTimestamp }, status: { conditions } } };
};

describe("planActors", () => {
  const CASES: [
    what: string,
    actors: ObservedActor[],
    options: Parameters<typeof plan>[1],
    expected: Partial<ReturnType<typeof summary>>,
  ][] = [
    ["nothing to do", [], {}, {}],
    ["up at once", [], { queued: 3 }, { create: ["0-0", "1-0", "2-0"] }],
    ["within max", [], { queued: 30, spec: { max: 2 } }, { create: ["0-0", "1-0"] }],
    ["slots", [], { queued: 9, spec: { slots: 4 } }, { create: ["0-0", "1-0", "2-0"] }],
    [
      "no more than maxStarting on the way",
      actors({ state: "starting" }),
      { queued: 9, spec: { maxStarting: 3 } },
      { create: ["1-0", "2-0"] },
    ],
    ["those that wait for a node count", actors({ state: "starting" }, { state: "starting" }), { queued: 2 }, {}],
    ["a free place in between", [actorOf(RUN, 1)], { queued: 2 }, { create: ["0-0"] }],
    [
      "the next generation of a finished one",
      [actorOf(RUN, 0, { state: "succeeded", generation: 4 })],
      { queued: 1 },
      { create: ["0-5"] },
    ],
    [
      "a Job without an owner is removed, and its place taken by the next generation",
      [actorOf(RUN, 0, { state: "orphaned" })],
      { queued: 1 },
      { create: ["0-1"], remove: [0] },
    ],
    [
      "a place whose Job is on its way out is taken by the next generation",
      [actorOf(RUN, 0, { state: "deleting" })],
      { queued: 1 },
      { create: ["0-1"] },
    ],
    ["idle ones go first", actors({ executions: 2 }, {}, { executions: 1 }), { running: 2, queued: 0 }, { drain: [1] }],
    [
      "then the least loaded",
      actors({ executions: 3 }, { executions: 1 }),
      { running: 4, spec: { slots: 4 } },
      { drain: [1] },
    ],
    ["those that never started go at once", actors({}, { state: "starting" }), { running: 1 }, { remove: [1] }],
    ["min stays", actors({}, {}), { spec: { min: 1 } }, { drain: [1] }],
    ["one that drains does not count", actors({ ...draining(-5) }, {}), { running: 2 }, { create: ["2-0"] }],
    ["one that drains for too long is removed", actors({ ...draining(-10_000) }), {}, { remove: [0] }],
    [
      "a learner that is away changes nothing",
      actors({}, {}),
      { link: { connected: false, sinceMs: NOW_MS } as never },
      {},
    ],
    ["nor one that starts", actors({}, {}), { link: says(0, 0, Phase.STARTING) }, {}],
    ["nor one that was told to stop", actors({}, {}), { link: says(0, 0, Phase.STOPPED) }, {}],
    ["nor a suspension under way", actors({}, {}), { stage: "Suspending" }, {}],
    ["a suspended run has none", actors({}, { state: "succeeded" }), { stage: "Suspended" }, { remove: [0] }],
    ["nor one that is over", actors({ executions: 1 }), { stage: "Ended", running: 1 }, { remove: [0] }],
    [
      "another spec: a quarter at a time",
      actors({ hash: "old" }, { hash: "old" }, { hash: "old" }, { hash: "old" }),
      { running: 4 },
      { drain: [0] },
    ],
    [
      "another spec: the least loaded first",
      actors({ hash: "old", executions: 1 }, { hash: "old" }),
      { running: 2 },
      { drain: [1] },
    ],
    [
      "another spec: not while one is under way",
      actors({ hash: "old" }, { ...draining(-1), hash: "old" }, {}),
      { running: 2 },
      {},
    ],
    [
      "another spec: those that wait at once",
      actors({ hash: "old", state: "starting" }),
      { queued: 1 },
      { remove: [0] },
    ],
    [
      "External",
      actors({}),
      { spec: { autoscaling: "External", replicas: 3 }, queued: 99 },
      { create: ["1-0", "2-0"] },
    ],
    ["after a failure the next waits", actors(failed(0)), { queued: 1 }, {}],
    ["and comes", actors(failed(5)), { queued: 1 }, { create: ["0-1"] }],
    ["one that leaves is replaced at once", actors({ state: "leaving" }), { queued: 1 }, { create: ["0-1"] }],
    ["one that is lost as well", actors({ state: "lost" }), { queued: 1 }, { create: ["0-1"], remove: [0] }],
    ["also of a run that is over", actors({ state: "leaving" }), { stage: "Ended" }, { remove: [0] }],
    [
      "a disruption is not waited for if the actor has lived",
      actors(disrupted(0, 900)),
      { queued: 1 },
      { create: ["0-1"] },
    ],
    ["but it is if the actor has hardly run", actors(disrupted(0, 2)), { queued: 1 }, {}],
    [
      "disruptions are no failures: others are not tried one at a time",
      actors(...[90, 80, 70, 60, 50].map((ago) => disrupted(ago, 2))),
      { queued: 3 },
      { create: ["0-1", "1-1", "2-1"] },
    ],
    [
      "after many one at a time",
      actors(failed(90), failed(80), failed(70), failed(60), failed(50)),
      { queued: 9 },
      { create: ["0-1"] },
    ],
    [
      "a success forgets them",
      actors(failed(50), {
        state: "succeeded",
        job: {
          metadata: actorOf(RUN, 1).job.metadata,
          status: { conditions: [{ type: "Complete", status: "True", lastTransitionTime: at(-1) }] },
        },
      }),
      { queued: 2 },
      { create: ["0-1", "1-1"] },
    ],
  ];
  for (const [what, there, options, expected] of CASES)
    test(what, () =>
      assert.deepEqual(summary(plan(there, options)), { create: [], drain: [], remove: [], ...expected }),
    );

  test("The plan never makes more actors than desired, and never drains needed ones", () => {
    const state = fc.constantFrom(
      "starting",
      "running",
      "leaving",
      "lost",
      "succeeded",
      "failed",
      "deleting",
    ) as fc.Arbitrary<ObservedActor["state"]>;
    const any = fc.record({ state, executions: fc.nat(3), leaving: fc.boolean(), hash: fc.constantFrom("now", "old") });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 20 }), fc.nat(40), fc.nat(12), (there, queued, max) => {
        const observed = there.map(({ leaving, ...change }, index) =>
          actorOf(RUN, index, { ...change, ...(leaving && draining(-1)) }),
        );
        const made = plan(observed, { queued, spec: { max: max + 1 } });
        const active = observed.filter((it) => it.state === "starting" || it.state === "running");
        const staying = active.filter((it) => !isDraining(it));
        const lost = observed.filter((it) => it.state === "lost");
        const removed = made.remove.filter(({ actor }) => actor.state !== "lost");
        const after = staying.length - made.drain.length - removed.length + made.create.length;
        assert.ok(made.create.length === 0 || after <= made.desired!, "too many were made");
        assert.ok(new Set(made.create.map(({ index }) => index)).size === made.create.length);
        assert.ok(
          made.create.every(({ index }) => !active.some((it) => it.index === index)),
          "a place was taken twice",
        );
        const leaving = made.drain.filter(({ reason }) => reason.startsWith("fewer")).length;
        assert.ok(leaving === 0 || staying.length - leaving >= made.desired!, "too many were told to leave");
        assert.ok(
          removed.every(({ actor }) => actor.state === "starting"),
          "one that runs was removed",
        );
        assert.equal(made.remove.length - removed.length, lost.length, "a Job waits for its lost node");
      }),
    );
  });
});

test("An actor that drains is removed when actors.drainSeconds are over, and the plan is made again at that time", () => {
  const look = (seconds: number, spec = {}) => {
    const made = plan(actors(draining(-seconds)), { spec });
    return { remove: summary(made).remove, againSeconds: made.againSeconds };
  };
  const byDefault = drainSeconds(RUN);
  assert.deepEqual(look(byDefault - 4), { remove: [], againSeconds: 4 });
  assert.deepEqual(look(byDefault), { remove: [0], againSeconds: undefined });
  assert.deepEqual(look(25, { drainSeconds: 30 }), { remove: [], againSeconds: 5 });
  assert.deepEqual(look(30, { drainSeconds: 30 }), { remove: [0], againSeconds: undefined });
});

test("The number falls only after the window, from the earlier desired number", () => {
  const stabiliser = new Stabiliser(60);
  const run = runOf({ actors: { min: 0, max: 10, scaleDownSeconds: 60 } });
  const look = (queued: number, seconds: number) =>
    planActors(observedOf(run, { link: says(queued) }), {
      stage: "Running",
      stabiliser,
      hash: "now",
      nowMs: NOW_MS + seconds * 1000,
    });
  assert.equal(look(6, 0).desired, 6);
  const waits = look(0, 10);
  assert.equal(waits.desired, 6);
  assert.deepEqual(waits.create, [], "kept for a while, but not made");
  assert.ok(waits.againSeconds! <= 60);
  assert.equal(look(0, 75).desired, 0);
});

describe("demandOf", () => {
  test("The demand is the queued and running executions", () =>
    assert.deepEqual(demandOf(observedOf(RUN, { link: says(3, 2) })), { queued: 3, running: 2 }));
  test("The demand is unknown without a learner", () => assert.equal(demandOf(observedOf(RUN)), undefined));
});

describe("drainSeconds", () => {
  test("The drain lasts longer than any execution", () =>
    assert.equal(drainSeconds(runOf({ learner: { leaseSeconds: 90 } })), 690));
  test("The drain lasts as long as the run says", () =>
    assert.equal(drainSeconds(runOf({ actors: { drainSeconds: 5 } })), 5));
});

describe("describeScaling", () => {
  const CASES: [
    before: number | undefined,
    queued: number,
    running: number,
    spec: object,
    expected: string | undefined,
  ][] = [
    [2, 24, 0, { slots: 4 }, "scaled actors 2 -> 6: 24 executions wait, 4 slots each"],
    [2, 20, 4, { slots: 4 }, "scaled actors 2 -> 6: 20 executions wait, 4 run, 4 slots each"],
    [undefined, 30, 0, { max: 3 }, "scaled actors 0 -> 3: 30 executions wait, 1 slot each (actors.max is 3)"],
    [3, 0, 0, {}, "scaled actors 3 -> 0: no execution waits or runs"],
    [3, 0, 0, { min: 1 }, "scaled actors 3 -> 1: no execution waits or runs (actors.min is 1)"],
    [1, 9, 0, { autoscaling: "External", replicas: 4 }, "scaled actors 1 -> 4: by spec.actors.replicas"],
    [2, 2, 0, {}, undefined],
  ];
  for (const [before, queued, running, spec, expected] of CASES)
    test(expected ?? "no change", () =>
      assert.equal(
        describeScaling(before, plan([], { queued, running, spec }), runOf({ actors: { min: 0, max: 10, ...spec } })),
        expected,
      ),
    );
});
