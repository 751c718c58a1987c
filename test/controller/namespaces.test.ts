/** The controller serves each namespace of `--namespace`, although others are missing or forbidden. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { releaseRuns } from "../../controller/cli/release-runs.ts";
import { NAMESPACE, TRAINING_RUN } from "../../controller/operator/kube/resources.ts";
import { answers, operator, restartOperator, skip, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld({ controller: false, parts: { isBoundByNamespace: true } });

test("A missing and a forbidden namespace keep no other from being served, and are served once they can be", {
  skip,
}, async () => {
  const [forbidden, served] = [await world.namespace(), await world.namespace()];
  await world.bind(served);
  for (const namespace of [forbidden, served]) await world.createRun(namespace, "run");
  const lines: { message: string; namespace?: string; error?: string }[] = [];
  const note = (fields: object, message: string) => void lines.push({ message, ...fields });
  await restartOperator({
    namespaces: ["nowhere", forbidden, served],
    metricsAddress: { host: "127.0.0.1", port: 0 },
    log: { debug() {}, info: note, warn: note },
  });
  const url = `http://127.0.0.1:${operator!.metricsPort}`;
  const isServed = async (namespace: string) =>
    new RegExp(`longrun_namespace_served\\{namespace="${namespace}"\\} (\\d)`).exec(
      await (await fetch(`${url}/metrics`)).text(),
    )?.[1];
  const told = (about: RegExp) =>
    lines.filter(({ message, namespace }) => about.test(message) && namespace === forbidden);
  await answers(served);
  assert.deepEqual([await isServed("nowhere"), await isServed(forbidden), await isServed(served)], ["0", "0", "1"]);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const [refused, ...more] = told(/namespace is not served/);
  assert.match(refused!.error!, /403 .*cannot list resource/);
  assert.deepEqual(more, []);
  assert.deepEqual(await world.status(forbidden, "run"), { observedGeneration: -1 });

  await world.bind(forbidden);
  await answers(forbidden);
  assert.equal(await isServed(forbidden), "1");
  assert.equal(told(/namespace is served/).length, 1);
});

test("A run of a namespace that is being deleted goes without its checkpoint, before the rights there go", {
  skip,
}, async () => {
  const namespace = await world.namespace();
  await world.bind(namespace);
  await restartOperator({ namespaces: [namespace] });
  const { metadata } = await world.createRun(namespace, "run");
  const learner = await answers(namespace);
  learner.onSuspend = () => new Promise(() => {}); // the checkpoint is never written
  const { uid } = (await world.client.get(NAMESPACE, { name: namespace }))!.metadata;
  await world.client.delete(NAMESPACE, { name: namespace }, { uid: uid! }); // it stays Terminating: no controller of namespaces runs
  await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: metadata.uid });
  await eventually(async () => (await world.run(namespace, "run")) === undefined, 20);
});

test("Where the rights are gone before the run, the log names the command that lets the run go", { skip }, async () => {
  const namespace = await world.namespace();
  await world.bind(namespace);
  const errors: string[] = [];
  const warn = ({ error = "" }: { error?: string }) => void errors.push(error);
  await restartOperator({ namespaces: [namespace], log: { debug() {}, info() {}, warn } });
  const { metadata } = await world.createRun(namespace, "run");
  await answers(namespace);
  await world.unbind(namespace);
  await world.client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: metadata.uid });
  const command = `longrun release-runs --namespace ${namespace}`;
  await eventually(() => errors.some((error) => error.includes(`403`) && error.endsWith(command)));
  const { client } = world;
  const options = { namespaces: [namespace], quietSeconds: 0.1, say() {}, signal: new AbortController().signal };
  assert.equal(await releaseRuns({ client, ...options }), 0);
  await eventually(async () => (await world.run(namespace, "run")) === undefined);
});

test("A controller none of whose namespaces is served is not ready", { skip }, async () => {
  const namespace = await world.namespace();
  const starting = restartOperator({ namespaces: [namespace, "nowhere"] });
  assert.equal(await Promise.race([starting, sleep(2000, "waits")]), "waits");
  await world.bind(namespace);
  await starting;
  await world.createRun(namespace, "run");
  await answers(namespace);
});
