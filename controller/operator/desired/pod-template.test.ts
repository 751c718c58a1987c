/** Tests the changes that the podTemplate of a run makes to its pods, and the fields that it cannot change. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasItsGpu } from "../../../crds/gpu.ts";
import { mergeStrategically } from "../../../crds/strategic-merge.ts";
import { actorHash } from "../parts/actors/desired.ts";
import { runOf } from "../run.fixture.ts";
import { actorOf, CUSTOM, claim, learnerOf, podsOf } from "./desired.fixture.ts";
import type { Run } from "./names.ts";
import { overlay } from "./pod.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

describe("overlay lays a podTemplate over a pod", () => {
  const CASES: [what: string, base: object, patch: object, expected: object][] = [
    ["a field", { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ["null removes", { a: 1, b: 2 }, { b: null }, { a: 1 }],
    [
      "containers by name",
      { containers: [{ name: "x", image: "1" }] },
      { containers: [{ name: "x", tty: true }, { name: "y" }] },
      { containers: [{ name: "x", image: "1", tty: true }, { name: "y" }] },
    ],
    [
      "mounts by path",
      { volumeMounts: [{ mountPath: "/a", name: "a" }] },
      { volumeMounts: [{ mountPath: "/a", name: "b" }] },
      { volumeMounts: [{ mountPath: "/a", name: "b" }] },
    ],
    [
      "volumes and variables by name, each with one source",
      { volumes: [{ name: "a", emptyDir: {} }], env: [{ name: "A", value: "1" }] },
      { volumes: [{ name: "a", image: {} }], env: [{ name: "A", valueFrom: {} }, { name: "B" }] },
      { volumes: [{ name: "a", image: {} }], env: [{ name: "A", valueFrom: {} }, { name: "B" }] },
    ],
    [
      "groups to the pod's own",
      { supplementalGroups: [1] },
      { supplementalGroups: [2, 1] },
      { supplementalGroups: [1, 2] },
    ],
    ["other lists whole", { args: ["a", "b"] }, { args: ["c"] }, { args: ["c"] }],
  ];
  for (const [what, base, patch, expected] of CASES)
    test(what, () => assert.deepEqual(mergeStrategically(base, patch), expected));

  test("The labels of longrun take precedence", () => {
    const merged = overlay(
      { metadata: { labels: { "longrun.dev/a": "ours", team: "inherited" } } },
      { metadata: { labels: { "longrun.dev/a": "theirs", team: "theirs", b: "theirs" } } },
    );
    assert.deepEqual(merged.metadata.labels, { "longrun.dev/a": "ours", team: "theirs", b: "theirs" });
  });

  test("overlay adds no container that the pod does not have", () => {
    const template = { spec: { containers: [{ name: "copy" }] } };
    const podTemplate = { spec: { nodeSelector: { a: "b" }, containers: [{ name: "learner" as const }] } };
    assert.deepEqual(overlay(template, podTemplate).spec, { ...template.spec, nodeSelector: { a: "b" } });
  });

  test("A podTemplate reaches the pods, and replaces them", () => {
    const podTemplate = { spec: { nodeSelector: { gpu: "yes" } } };
    const run = runOf({ learner: { podTemplate }, actors: { podTemplate } });
    assert.deepEqual(learnerOf(run).spec!.template.spec!.nodeSelector, { gpu: "yes" });
    assert.deepEqual(actorOf(run).spec!.template.spec!.nodeSelector, { gpu: "yes" });
    const hash = (it: Run) => learnerOf(it).metadata.annotations!["longrun.dev/spec-hash"];
    assert.notEqual(hash(run), hash(runOf()));
    assert.notEqual(actorHash(run, DEFAULT_SETTINGS), actorHash(runOf(), DEFAULT_SETTINGS));
  });
});

test("Containers get the claims of devices that the run names, and a learner on CUDA needs no nvidia.com/gpu then", () => {
  const podTemplate = { spec: { resourceClaims: [{ name: "gpus", resourceClaimTemplateName: "one-gpu" }] } };
  const resources = { claims: [{ name: "gpus" }] };
  const run = runOf({
    learner: { device: "CUDA", podTemplate, resources },
    actors: { podTemplate, sandboxResources: resources },
  });
  assert.ok(hasItsGpu(run.spec));
  const { learner, actor } = podsOf(run);
  for (const pod of [learner, actor]) assert.deepEqual(pod.resourceClaims, podTemplate.spec.resourceClaims);
  assert.deepEqual(learner.containers[0]!.resources, {
    requests: { cpu: "500m", memory: "1Gi" }, // the default
    ...resources,
  });
  assert.deepEqual(
    actor.containers
      .concat(actor.initContainers ?? [])
      .flatMap(({ name, resources }) => (resources?.claims ? [name] : [])),
    ["sandbox-0"],
  );
  assert.ok(
    learner.volumes!.some(({ name }) => name === "shared-memory"),
    "libraries of several GPUs need more than 64 MiB",
  );
});

describe("The parts of a pod that a podTemplate cannot touch", () => {
  test("It cannot use the names of longrun's volumes in the learner's pod, which the CRD's rule lists", () => {
    const run = runOf({ ...CUSTOM, model: { policy: "big/model", volume: claim("models") } });
    for (const { name } of podsOf(run).learner.volumes!) {
      const podTemplate = { spec: { volumes: [{ name, emptyDir: {} }] } };
      assert.throws(() => runOf({ learner: { podTemplate } }), /are longrun's own; choose another name/, name);
    }
  });

  test("It cannot take away the learner's groups, with which the learner reads the answers", () => {
    const podTemplate = { spec: { securityContext: { supplementalGroups: [5000] } } };
    const { securityContext } = podsOf(runOf({ learner: { podTemplate } })).learner;
    assert.deepEqual(securityContext?.supplementalGroups, [10003, 5000]);
  });

  test("It cannot change sandboxes: additions of an actor reach the supervisor alone", () => {
    const env = [{ name: "LOG_LEVEL", value: "debug" }];
    const podTemplate = { spec: { containers: [{ name: "supervisor", env }] } };
    const { actor } = podsOf(runOf({ actors: { podTemplate, slots: 2 } }));
    const has = [...actor.containers, ...actor.initContainers!].filter(({ env }) =>
      env?.some(({ name }) => name === "LOG_LEVEL"),
    );
    assert.deepEqual(
      has.map(({ name }) => name),
      ["supervisor"],
    );
  });
});
