/** Two controllers, each with an installation of its own, that serve one namespace. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CLAIM, CONTENDER, LEASE_NAME } from "../../controller/operator/claims/claims.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import type { Operator, OperatorOptions } from "../../controller/operator/operator.ts";
import { answers, conditionOf, grant, hasEvent, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

/** A busy machine may give a controller no time for seconds. */
const GONE_SECONDS = 10;
/** Time in which two controllers that fight change the learner's Deployment several times. */
const FIGHT_SECONDS = 8;

useWorld({
  controller: false,
  ready: () =>
    grant("leases", { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create", "get", "patch"] }),
});

/** Starts the controller of an installation in a new namespace, whose image its name tells. */
async function install(image: string, options: Partial<OperatorOptions> = {}) {
  const home = await world.namespace();
  const operator: Operator = await world.operator({
    settings: { ...DEFAULT_SETTINGS, image },
    lease: { namespace: home, leaseSeconds: 15, renewSeconds: 12, retrySeconds: 0.5 },
    goneSeconds: GONE_SECONDS,
    ...options,
  });
  return { operator, name: `${home}/${LEASE_NAME}`, home };
}

const imageOf = async (namespace: string) =>
  (await world.deployment(namespace, "run"))?.spec?.template.spec?.containers[0]?.image;
const annotationsOf = async (namespace: string) => (await world.run(namespace, "run"))?.metadata.annotations ?? {};

describe("two controllers of one namespace", { skip }, () => {
  test("One reconciles a run, the other names itself, and takes over when the first is gone", async () => {
    const namespace = await world.namespace();
    const namespaces = [namespace];
    const first = await install("first", { namespaces });
    await world.createRun(namespace, "run");
    await answers(namespace);
    assert.equal((await annotationsOf(namespace))[CLAIM], first.name);
    const second = await install("second", { namespaces });
    const contended = await eventually(() => conditionOf(namespace, "Contended"));
    assert.deepEqual([contended.status, contended.reason], ["True", "OtherController"]);
    assert.ok(contended.message?.includes(second.name), contended.message);
    await hasEvent(namespace, new RegExp(`^OtherController: controller ${first.name} reconciles this run`));

    const { generation } = (await world.deployment(namespace, "run"))!.metadata;
    const { uid } = (await world.podsOf(namespace, "run", "learner"))[0]!.metadata;
    const audit = world.auditLength();
    await sleep(FIGHT_SECONDS * 1000);
    assert.deepEqual(world.writes(namespace, audit), [], "neither writes anything");
    assert.equal((await world.deployment(namespace, "run"))!.metadata.generation, generation);
    assert.equal((await world.podsOf(namespace, "run", "learner"))[0]!.metadata.uid, uid);

    await first.operator.stop();
    await eventually(async () => (await annotationsOf(namespace))[CLAIM] === second.name);
    assert.equal((await annotationsOf(namespace))[CONTENDER], undefined);
    await world.patchRun(namespace, "run", { upgradePolicy: "Immediately" });
    await eventually(async () => (await imageOf(namespace)) === "second");
    await eventually(async () => (await conditionOf(namespace, "Contended")) === undefined);
    await second.operator.stop();
  });

  test("A class separates them, and a run that changes its class goes to the other one", async () => {
    const namespace = await world.namespace();
    const namespaces = [namespace];
    const plain = await install("plain", { namespaces });
    const next = await install("next", { namespaces, controllerClass: "next" });
    await world.createRun(namespace, "run", { upgradePolicy: "Immediately" });
    await answers(namespace);
    await world.createRun(namespace, "other", { controllerClass: "next" });
    await answers(namespace, "other");
    const other = await world.deployment(namespace, "other");
    assert.deepEqual([await imageOf(namespace), other?.spec?.template.spec?.containers[0]?.image], ["plain", "next"]);
    assert.deepEqual(await conditionOf(namespace, "Contended"), undefined);
    await world.patchRun(namespace, "run", { controllerClass: "next" });
    await eventually(async () => (await annotationsOf(namespace))[CLAIM] === next.name);
    await eventually(async () => (await imageOf(namespace)) === "next");
    await plain.operator.stop();
    await next.operator.stop();
  });
});
