/** A controller of named namespaces, some of which are missing or forbidden: each is served by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answers, operator, restartOperator, skip, useWorld, world } from "./steps.ts";

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
  assert.deepEqual(await world.status(forbidden, "run"), {});

  await world.bind(forbidden);
  await answers(forbidden);
  assert.equal(await isServed(forbidden), "1");
  assert.equal(told(/namespace is served/).length, 1);
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
