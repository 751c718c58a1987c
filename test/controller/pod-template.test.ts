/** Tests podTemplates through the controller, on a real API server: the fields that reach the pods, and the refusals. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { DEPLOYMENT, NAMESPACE } from "../../controller/operator/kube/resources.ts";
import { findCondition } from "../../controller/operator/status/conditions.ts";
import { skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const MOST_VOLUMES = 32;
const volumesOf = (count: number, of: string) =>
  Array.from({ length: count }, (_, index) => ({ name: `${of}-${index}`, emptyDir: {} }));

const learner = { podTemplate: { spec: { volumes: volumesOf(MOST_VOLUMES, "default") } } };
useWorld({
  controller: { settings: { ...DEFAULT_SETTINGS, defaultRuntime: "default" } },
  ready: () => world.runtime("default", { learner }),
});

describe("podTemplate", { skip, concurrency: 2 }, () => {
  test("It reaches the pods, which pass the restricted level; sandboxes get none of it", async () => {
    const namespace = await world.namespace();
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await world.client.mergePatch(NAMESPACE, { name: namespace }, { metadata: { labels } });
    const env = [{ name: "LOG_LEVEL", value: "debug" }];
    const profiles = { seccompProfile: { type: "Localhost", localhostProfile: "a.json" } };
    const tolerations = [{ key: "gpu", operator: "Exists", effect: "NoSchedule" }];
    const volumeMounts = [{ name: "default-0", mountPath: "/mnt/cache" }];
    const volumes = [{ name: "default-0", configMap: { name: "settings", optional: true } }];
    const securityContext = { ...profiles, fsGroup: 5000, supplementalGroups: [5001] };
    await world.createRun(namespace, "run", {
      learner: {
        podTemplate: {
          spec: { tolerations, securityContext, containers: [{ name: "learner", env, volumeMounts }], volumes },
        },
      },
      actors: {
        min: 1,
        podTemplate: {
          spec: { tolerations, securityContext: profiles, containers: [{ name: "supervisor", env }] },
        },
      },
    });
    const podOf = (component: string) =>
      eventually(async () => (await world.podsOf(namespace, "run", component))[0]?.spec);
    const [learner, actor] = [await podOf("learner"), await podOf("actor")];
    for (const pod of [learner, actor]) {
      assert.ok(pod.tolerations!.some(({ key }) => key === "gpu"));
      assert.deepEqual(pod.securityContext!.seccompProfile, profiles.seccompProfile);
      assert.equal(pod.securityContext!.runAsNonRoot, true);
      assert.deepEqual(
        pod.containers.map(({ env }) => env?.filter(({ name }) => name === "LOG_LEVEL")),
        [env],
      );
    }
    assert.deepEqual(
      [learner.securityContext!.fsGroup, learner.securityContext!.supplementalGroups],
      [5000, [10003, 5001]],
    );
    assert.ok(learner.containers[0]!.volumeMounts!.some(({ mountPath }) => mountPath === "/mnt/cache"));
    const [cache] = learner.volumes!.filter(({ name }) => name === "default-0");
    assert.equal(cache!.configMap?.name, "settings", "the run's volume is there in place of the runtime's");
    assert.equal(cache!.emptyDir, undefined);
    assert.deepEqual(
      actor.initContainers!.map(({ name, env }) => [name, env]),
      [["sandbox-0", undefined]],
    );
  });

  test("A podTemplate that exceeds the limits with its runtime is named, and an edit lets the run continue", async () => {
    const namespace = await world.namespace();
    await world.createRun(namespace, "run", { learner: { podTemplate: { spec: { volumes: volumesOf(1, "own") } } } });
    const ready = await eventually(async () => {
      const found = findCondition((await world.status(namespace, "run")).conditions, "Ready");
      return found?.reason === "RuntimeRefuses" && found;
    });
    assert.match(
      ready.message,
      /TrainingRuntime default does not allow it: spec\.learner\.podTemplate\.spec\.volumes is \[.*; give a list of 0 to 32 items; change the field/,
    );
    assert.deepEqual(await world.list(DEPLOYMENT, namespace), []);
    await world.patchRun(namespace, "run", { learner: { podTemplate: null } });
    await eventually(async () => (await world.status(namespace, "run")).phase === "Running");
  });
});
