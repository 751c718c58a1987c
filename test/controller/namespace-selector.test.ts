/** A controller with cluster-wide rights that serves the namespaces with a label. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { NAMESPACE, SECRET } from "../../controller/operator/kube/resources.ts";
import { answers, grant, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** Time in which a controller that serves a namespace would have made children of a run. */
const IDLE_SECONDS = 3;

useWorld({
  controller: false,
  ready: async () => {
    await grant("namespaces", { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] });
    await world.operator({ namespaceSelector: "longrun=yes" });
  },
});

const label = (namespace: string, longrun: string | null) =>
  world.client.mergePatch(NAMESPACE, { name: namespace }, { metadata: { labels: { longrun } } });
const iterationsOf = async (namespace: string) =>
  (await world.run(namespace, "run"))?.status?.display?.iteration?.split("/")[1];

describe("--namespace-selector", { skip }, () => {
  test("A namespace is served while it has the label", async () => {
    const namespace = await world.namespace();
    await label(namespace, "no");
    await world.createRun(namespace, "run");
    await sleep(IDLE_SECONDS * 1000);
    assert.deepEqual(await world.list(SECRET, namespace), []);
    assert.deepEqual(await world.status(namespace, "run"), { observedGeneration: -1 });

    await label(namespace, "yes");
    await answers(namespace);
    await eventually(async () => (await iterationsOf(namespace)) === "100");

    await label(namespace, null);
    await sleep(IDLE_SECONDS * 1000);
    const audit = world.auditLength();
    await world.patchRun(namespace, "run", { stopping: { iterations: 7 } });
    await sleep(IDLE_SECONDS * 1000);
    assert.deepEqual(world.writes(namespace, audit), []);
    assert.ok(await world.deployment(namespace, "run"), "what runs goes on");
    await label(namespace, "yes");
    await eventually(async () => (await iterationsOf(namespace)) === "7");
  });
});
