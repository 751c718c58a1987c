import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { messages, type StatusMessage } from "../../../../proto/service.ts";
import { DEFAULT_SETTINGS } from "../../desired/settings.fixture.ts";
import type { Observed } from "../../observe.ts";
import { linkOf, NOW_MS, observedOf, podOf, runOf } from "../../run.fixture.ts";
import type { Finding } from "../../status/conditions.ts";
import { Stabiliser } from "../actors/autoscale.ts";
import { desiredWorkload, type Workload } from "../admission/desired.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import {
  describeGeneration,
  type GenerationPlan,
  generationFinding,
  generationStatus,
  planGeneration,
  UNUSED_SECONDS,
  unusedSince,
} from "./generation.ts";

const { Phase } = messages;
const RUN = runOf({
  model: { policy: "quickstart", generationBatchSize: 10 },
  generation: { replicas: { min: 2, max: 6 } },
});

const deployment = (replicas: number, readyReplicas = 0): Observed["generators"]["deployment"] =>
  ({ metadata: { name: "quick-generators" }, spec: { replicas }, status: { readyReplicas } }) as never;
const said = (waitingPrompts: number, ...running: number[]): StatusMessage => ({
  phase: Phase.GENERATING,
  generation: {
    waitingPrompts,
    generators: running.map((it, i) => ({ address: `10.0.0.${i}:8443`, ready: true, running: it, policyVersion: 3 })),
  },
});
const observedWith = (
  {
    replicas,
    ready = replicas,
    say,
    pods = [],
  }: { replicas?: number; ready?: number | undefined; say?: StatusMessage; pods?: Observed["generators"]["pods"] },
  run = RUN,
  change: Partial<Observed> = {},
) =>
  observedOf(
    replicas === undefined
      ? run
      : { ...run, status: { ...run.status, generation: { ...run.status?.generation, replicas } } },
    {
      generators: {
        deployment: replicas === undefined ? undefined : deployment(replicas, ready),
        pods,
        secret: undefined,
      },
      link: say && linkOf(say),
      ...change,
    },
  );
const plan = (observed: Observed, stage: Stage = "Running", stabiliser = new Stabiliser(0)) =>
  planGeneration(observed, { stage, stabiliser, nowMs: NOW_MS });

describe("The desired number of generators", () => {
  const CASES: [what: string, found: ReturnType<typeof plan>, replicas: number | undefined][] = [
    ["none was asked for", plan(observedOf(runOf())), undefined],
    ["no longer asked for", plan(observedWith({ replicas: 3 }, runOf())), 0],
    ["the learner has not said anything", plan(observedWith({})), 2],
    ["the learner is away: they stay", plan(observedWith({ replicas: 5 })), 5],
    ["away, and max has become less", plan(observedWith({ replicas: 9 })), 6],
    ["nothing to write", plan(observedWith({ replicas: 5, say: said(0) })), 2],
    ["what waits and what is written", plan(observedWith({ replicas: 2, say: said(11, 10, 10) })), 4],
    ["more than max", plan(observedWith({ replicas: 2, say: said(900, 10, 10) })), 6],
    [
      "told to stop: they stay until the learner has",
      plan(observedWith({ replicas: 4, say: said(0) }), "Suspending"),
      4,
    ],
    ...(["Initialising", "Suspended", "Queued", "Refused", "Ended"] as const).map(
      (stage): [string, ReturnType<typeof plan>, number] => [stage, plan(observedWith({ replicas: 4 }), stage), 0],
    ),
  ];
  for (const [what, found, replicas] of CASES) test(what, () => assert.equal(found?.replicas, replicas));

  test("It is at most the number that Kueue has admitted, even below min", () => {
    const admitted = (count: number) => {
      const workload = { status: { admission: { podSetAssignments: [{ name: "generators", count }] } } } as Workload;
      return plan(observedWith({ replicas: 2, say: said(900) }, RUN, { workload }))?.replicas;
    };
    assert.deepEqual([admitted(4), admitted(1)], [4, 1]);
  });

  test("It falls only after the stabilisation window, and the controller looks again then", () => {
    const stabiliser = new Stabiliser(300);
    const at = (seconds: number, waiting: number) =>
      planGeneration(observedWith({ replicas: 5, say: said(waiting) }), {
        ...{ stage: "Running", stabiliser, nowMs: NOW_MS + seconds * 1000 },
      });
    assert.equal(at(0, 50)?.replicas, 5);
    assert.deepEqual([at(299, 0)?.replicas, at(299, 0)?.againSeconds], [5, 300]);
    assert.deepEqual([at(601, 0)?.replicas, at(601, 0)?.againSeconds], [2, undefined]);
  });

  test("An event reports each change with its reason, and nothing else", () => {
    const told = (replicas: number | undefined) => {
      const observed = observedWith({ ...(replicas !== undefined && { replicas }), say: said(21, 10) });
      return describeGeneration(observed, plan(observed)!);
    };
    assert.equal(told(2), "scaled generators 2 -> 4: 21 prompts wait, 10 solutions are written, 10 fit in a generator");
    assert.deepEqual([told(4), told(undefined)], [undefined, undefined]);
  });
});

describe("The Workload of a run with generators", () => {
  const setsOf = (generation?: object) =>
    desiredWorkload(runOf({ queueName: "team", ...(generation && { generation }) }), DEFAULT_SETTINGS);
  const GPU = { limits: { "nvidia.com/mig-1g.10gb": 1 } };

  test("It has the generators with their GPUs, and lets Kueue admit fewer than max", () => {
    const podSets = setsOf({ replicas: { min: 2, max: 6 }, resources: GPU }).spec.podSets;
    const { name, count, minCount, template } = podSets[2]!;
    assert.deepEqual([name, count, minCount], ["generators", 6, 2]);
    assert.deepEqual(template.spec!.containers, [{ name: "generator", resources: GPU }]);
    assert.equal(setsOf({ replicas: { min: 3, max: 3 } }).spec.podSets[2]!.minCount, undefined);
    assert.equal(setsOf().spec.podSets.length, 2);
  });
  test("It is another Workload when generators appear or ask for other resources, not when their number grows", () => {
    const hash = (generation?: object) => setsOf(generation).metadata.annotations!["longrun.dev/spec-hash"];
    assert.equal(hash({}), hash({ replicas: { min: 2, max: 6 } }));
    assert.notEqual(hash({}), hash());
    assert.notEqual(hash({}), hash({ resources: GPU }));
  });
});

describe("GenerationAvailable", () => {
  const unused = (...reasons: string[]): StatusMessage => ({
    phase: Phase.GENERATING,
    generation: { generators: reasons.map((it, i) => ({ address: `g${i}`, ready: true, notUsedBecause: it })) },
  });
  const pulled = podOf(RUN, "learner", {
    containerStatuses: [
      { name: "generator", image: "i", state: { waiting: { reason: "ImagePullBackOff", message: "m" } } },
    ],
  });
  const refused = { reason: "QuotaExceeded", message: "q" } as const;
  /** After so many seconds in which nothing has changed. */
  const findingOf = (observed: Observed, plan: GenerationPlan, refused?: Finding, seconds = UNUSED_SECONDS) => {
    const unusedSinceMs = unusedSince(observed, new Map(), NOW_MS);
    return generationFinding(observed, { plan, refused, unusedSinceMs, nowMs: NOW_MS + seconds * 1000 });
  };
  const CASES: [what: string, observed: Observed, expected: RegExp, refused?: typeof refused][] = [
    ["all ready", observedWith({ replicas: 2 }), /^true AsDesired 2 of 2 generators are ready$/],
    ["some start", observedWith({ replicas: 2, ready: 1 }), /^true Scaling 1 of 2 generators are ready$/],
    ["all start", observedWith({ replicas: 2, ready: 0 }), /^false Starting generators start/],
    [
      "their image cannot be pulled",
      observedWith({ replicas: 2, ready: 0, pods: [pulled] }),
      /^false ImagePullFailed generators wait: image i cannot be pulled \(m\): check spec\.generation\.image/,
    ],
    [
      "one is there, others are refused",
      observedWith({ replicas: 2, ready: 1 }),
      /^true Scaling 1 of 2 generators are ready; the others wait: q$/,
      refused,
    ],
    ["refused", observedWith({ replicas: 2, ready: 0 }), /^false QuotaExceeded generators wait: q$/, refused],
    [
      "one writes something else than the learner",
      observedWith({ replicas: 2, say: unused("", "log-probs differ") }),
      /^true AsDesired 2 of 2 generators are ready; the learner does not use g1: log-probs differ$/,
    ],
    [
      "all of them do",
      observedWith({ replicas: 2, say: unused("old weights", "log-probs differ") }),
      /^false GeneratorsNotUsed the learner uses no generator: g0: old weights; g1: log-probs differ$/,
    ],
    [
      "the learner cannot resolve their name",
      observedWith({ replicas: 2, say: unused("its name does not resolve: getaddrinfo EAI_AGAIN g") }),
      /^false NamesNotResolved the learner uses no generator: g0: its name .*networkPolicy\.dns/,
    ],
  ];
  for (const [what, observed, expected, refusal] of CASES)
    test(what, () => {
      const { available, reason, message } = findingOf(observed, { ...plan(observed)!, replicas: 2 }, refusal);
      assert.match(`${available} ${reason} ${message}`, expected);
    });

  test("A generator that loads new weights counts as available for some minutes", () => {
    const observed = observedWith({
      replicas: 2,
      say: unused("it loads policy version 5", "it loads policy version 5"),
    });
    const { available, message } = findingOf(observed, plan(observed)!, undefined, UNUSED_SECONDS - 1);
    assert.equal(`${available} ${message}`, "true 2 of 2 generators are ready");
    const later = unusedSince(observed, new Map([["g0", NOW_MS - 5000]]), NOW_MS);
    assert.deepEqual(
      [...later],
      [
        ["g0", NOW_MS - 5000],
        ["g1", NOW_MS],
      ],
    );
  });

  test("The condition of a suspended run says so", () => {
    const observed = observedWith({ replicas: 0 });
    assert.equal(findingOf(observed, plan(observed, "Suspended")!).reason, "NoWork");
  });
});

test("The status has the number of ready generators, and the policy version that all used ones have", () => {
  const versions = (...found: [version: number | undefined, why?: string][]) => {
    const generators = found.map(([policyVersion, notUsedBecause = ""], i) => ({
      ...{ address: `g${i}`, ready: true, notUsedBecause },
      ...(policyVersion !== undefined && { policyVersion }),
    }));
    const say = { phase: Phase.GENERATING, generation: { generators } };
    const run = runOf({ generation: {} }, { generation: { policyVersion: 3 } });
    const observed = observedWith({ replicas: 2, ready: 1, say }, run);
    return generationStatus(observed, plan(observed));
  };
  assert.deepEqual(versions([5], [4], [1, "too old"]), { ready: 1, replicas: 1, policyVersion: 4 });
  assert.equal(versions([5], [undefined])?.policyVersion, 3);
  assert.equal(versions()?.policyVersion, 3);
  assert.equal(generationStatus(observedOf(runOf()), undefined), undefined);
});
