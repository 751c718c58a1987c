import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DEFAULT_SETTINGS } from "../../desired/settings.fixture.ts";
import { runOf } from "../../run.fixture.ts";
import { desiredWorkload, type Workload } from "./desired.ts";
import { choicesOf, placed, type ResourceFlavor } from "./flavors.ts";
import { admissionOf, asksFor, coveredActors, setConditions } from "./queue.ts";

const RUN = runOf({ queueName: "team", actors: { min: 2, max: 4 } });
const of = (spec: object = {}) => desiredWorkload(runOf({ queueName: "team", ...spec }), DEFAULT_SETTINGS);
const DESIRED = desiredWorkload(RUN, DEFAULT_SETTINGS);

const workload = (held: Record<string, "True" | "False">, change: Partial<Workload> = {}): Workload => ({
  ...DESIRED,
  status: {
    conditions: Object.entries(held).map(([type, status]) => ({
      ...{ type, status, reason: "R", message: "because\n of it", lastTransitionTime: "then" },
    })),
    admission: { clusterQueue: "research" },
  },
  ...change,
});
const ADMITTED = { QuotaReserved: "True", Admitted: "True" } as const;

describe("admissionOf", () => {
  const CASES: [what: string, workload: Workload | undefined, expected: string][] = [
    ["not made yet", undefined, "waiting Queued LocalQueue team: the run is being queued"],
    [
      "not looked at",
      workload({}),
      "waiting Queued LocalQueue team: Kueue has not handled Workload quick-workload yet: check that Kueue runs and that there is such a LocalQueue",
    ],
    ["no quota", workload({ QuotaReserved: "False" }), "waiting Queued LocalQueue team: because of it (R)"],
    [
      "checks",
      workload({ QuotaReserved: "True" }),
      "waiting Queued LocalQueue team: quota is reserved; it waits for the admission checks: their result",
    ],
    ["admitted", workload(ADMITTED), "admitted Admitted LocalQueue team: ClusterQueue research admitted the run"],
    [
      "evicted",
      workload({ ...ADMITTED, Evicted: "True" }),
      "waiting Evicted LocalQueue team: Kueue has evicted the run (R: because of it)",
    ],
    [
      "evicted, its quota given back",
      workload({ QuotaReserved: "False", Evicted: "True" }),
      "waiting Evicted LocalQueue team: Kueue has evicted the run (R: because of it); because of it (R)",
    ],
    [
      "admitted once more",
      workload({ ...ADMITTED, Evicted: "False" }),
      "admitted Admitted LocalQueue team: ClusterQueue research admitted the run",
    ],
    [
      "deactivated",
      workload(ADMITTED, { spec: { ...DESIRED.spec, active: false } }),
      'waiting Queued LocalQueue team: Workload quick-workload is deactivated; kubectl patch workload quick-workload --type merge -p \'{"spec":{"active":true}}\' activates it',
    ],
    [
      "something else was admitted",
      workload(ADMITTED, { metadata: of({ learner: { resources: { requests: { cpu: "9" } } } }).metadata }),
      "waiting Queued LocalQueue team: its pods' requests have changed since its admission: it is queued again",
    ],
  ];
  for (const [what, found, expected] of CASES)
    test(what, () => {
      const admission = admissionOf(DESIRED, found);
      assert.ok(admission.state !== "notQueued");
      assert.equal(`${admission.state} ${admission.finding.reason} ${admission.finding.message}`, expected);
    });

  test("A run without a queue has no admission", () =>
    assert.deepEqual(admissionOf(undefined, undefined), { state: "notQueued" }));
});

describe("The Workload's requests", () => {
  test("It has the learner and actors.min, with the fields that decide where they fit", () => {
    const resources = { requests: { cpu: "4" }, limits: { "nvidia.com/gpu": 1 } };
    const podTemplate = { spec: { nodeSelector: { gpu: "a" }, priorityClassName: "high" } };
    const { spec } = of({ learner: { resources, podTemplate }, actors: { min: 3, max: 3, slots: 2 } });
    const [learner, actors] = spec.podSets;
    assert.deepEqual(learner, {
      ...{ name: "learner", count: 1 },
      template: {
        spec: { containers: [{ name: "learner", resources }], nodeSelector: { gpu: "a" }, priorityClassName: "high" },
      },
    });
    assert.equal(actors!.count, 3);
    const { initContainers, containers } = actors!.template.spec!;
    assert.deepEqual(
      initContainers!.map(({ name, restartPolicy }) => `${name} ${restartPolicy}`),
      ["sandbox-0 Always", "sandbox-1 Always"],
    );
    assert.ok(initContainers!.every(({ resources }) => resources?.requests?.memory !== undefined));
    assert.deepEqual(
      containers.map(({ name }) => name),
      ["supervisor"],
    );
  });

  const SAME: [what: string, spec: object, same: boolean][] = [
    ["iterations", { stopping: { iterations: 3 } }, true],
    ["images", { learner: { image: "other" }, actors: { min: 2, max: 4, image: "other" } }, true],
    ["more actors", { actors: { min: 3, max: 4 } }, true],
    ["no actors", { actors: { min: 0, max: 4 } }, true],
    ["the learner's requests", { learner: { resources: { requests: { cpu: "1" } } } }, false],
    ["the sandboxes' requests", { actors: { min: 2, max: 4, sandboxResources: { requests: { cpu: "1" } } } }, false],
    ["other nodes", { learner: { podTemplate: { spec: { nodeSelector: { a: "b" } } } } }, false],
    ["another queue", { queueName: "other" }, false],
  ];
  for (const [what, spec, same] of SAME)
    test(`A run with ${what} ${same ? "stays admitted" : "queues anew"}`, () =>
      assert.equal(asksFor(of({ actors: { min: 2, max: 4 }, ...spec }), DESIRED), same));

  test("It covers as many actors as were admitted, or else as were asked for", () => {
    assert.equal(coveredActors(undefined), 0);
    assert.equal(coveredActors(DESIRED), 2);
    const podSetAssignments = [{ name: "actors", count: 1 }];
    assert.equal(coveredActors({ ...DESIRED, status: { admission: { podSetAssignments } } }), 1);
  });
});

describe("The nodes that Kueue chose", () => {
  const flavors = new Map<string, ResourceFlavor>([
    ["gpu", { metadata: { name: "gpu" }, spec: { nodeLabels: { pool: "gpu" }, tolerations: [{ key: "gpu" }] } }],
    ["any", { metadata: { name: "any" } }],
  ]);
  const podSetAssignments = [
    { name: "learner", flavors: { cpu: "gpu", memory: "gpu" } },
    { name: "actors", flavors: { cpu: "any", memory: "any" } },
  ];
  const podSetUpdates = [{ name: "actors", annotations: { class: "fast" }, nodeSelector: { zone: "a" } }];
  const admissionChecks = [{ name: "nodes", state: "Ready", podSetUpdates }];
  const admitted: Workload = { ...DESIRED, status: { admission: { podSetAssignments }, admissionChecks } };

  test("They come from the flavors and the admission checks", () =>
    assert.deepEqual(choicesOf(admitted, flavors), {
      learner: [{ nodeSelector: { pool: "gpu" }, tolerations: [{ key: "gpu" }] }],
      actors: [{}, { annotations: { class: "fast" }, nodeSelector: { zone: "a" } }],
    }));

  test("They are laid over the run's own templates", () => {
    const run = runOf({
      learner: { podTemplate: { spec: { nodeSelector: { arch: "amd64" }, priorityClassName: "high" } } },
    });
    const { learner, actors } = placed(run, choicesOf(admitted, flavors)).spec;
    assert.deepEqual(learner.podTemplate?.spec, {
      ...{ nodeSelector: { arch: "amd64", pool: "gpu" }, tolerations: [{ key: "gpu" }], priorityClassName: "high" },
    });
    assert.deepEqual(actors.podTemplate, {
      metadata: { annotations: { class: "fast" } },
      spec: { nodeSelector: { zone: "a" } },
    });
    assert.deepEqual(placed(run, {}), run);
  });
});

test("setConditions keeps other conditions, and changes a time with its status", () => {
  const before = workload({ QuotaReserved: "True", Admitted: "True" });
  const set = (status: "True" | "False") => ({ type: "Admitted", status, reason: "N", message: "m" });
  const times = (status: "True" | "False") =>
    setConditions(before, [set(status)], "now").map(({ type, lastTransitionTime }) => `${type} ${lastTransitionTime}`);
  assert.deepEqual(times("False"), ["QuotaReserved then", "Admitted now"]);
  assert.deepEqual(times("True"), ["QuotaReserved then", "Admitted then"]);
});
