import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { NotificationStatus } from "../../../../crds/trainingrun.ts";
import { until } from "../../../../test/until.ts";
import { type Look, settle } from "../../context.ts";
import { at, NOW_MS, observedOf, runOf } from "../../run.fixture.ts";
import { eventOf, isUntold, type NotificationMemory, notify } from "./notification.ts";

const SECRET = "T0P-SECRET";
const ENDED = {
  ...{ phase: "Succeeded", iteration: 12, completionTime: at(-10) },
  conditions: [{ type: "Succeeded", status: "True", reason: "Completed", message: "all 12 iterations are done" }],
};

describe("The webhook of a run that is over", () => {
  let server: Server;
  let bodies: { id: string }[];
  let status: number | undefined;
  before(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      bodies.push(JSON.parse(body));
      if (status !== undefined) response.writeHead(status).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${SECRET}`;

  /** A controller's looks at one run, whose status is what the last look found out. */
  function looking(
    webhook: object,
    found: object = ENDED,
    secrets: Record<string, Record<string, string>> = {},
    webhookHosts: string[] = ["127.0.0.1"],
  ) {
    bodies = [];
    const told: string[] = [];
    const logged: string[] = [];
    const waking = { resolve: () => {} };
    let nowMs = NOW_MS;
    let memory: NotificationMemory = { notification: undefined };
    const calls = new Set<string>();
    const run = runOf({ notifications: { webhook } }, structuredClone(found));
    const begin = (): Look<NotificationMemory> => {
      const context = {
        client: { get: async (_: unknown, { name }: { name: string }) => secrets[name] && { data: secrets[name] } },
        events: {
          record: (_: unknown, { reason, note }: { reason: string; note: string }) => told.push(`${reason}: ${note}`),
        },
        log: {
          debug() {},
          info: (fields: object) => logged.push(JSON.stringify(fields)),
          warn: (fields: object, message: string) => told.push(JSON.stringify([fields, message])),
        },
        settings: { webhookHosts },
        cache: { trainingRun: () => run },
        ...{ wake: () => waking.resolve(), now: () => nowMs },
      };
      const seen = { key: "team/quick", observed: observedOf(structuredClone(run)), memory, calls, context, nowMs };
      return seen as unknown as Look<NotificationMemory>;
    };
    const look = () => {
      const it = begin();
      const result = notify(it);
      settle(it, result);
      return result.againSeconds;
    };
    return {
      told,
      logged,
      run,
      later: (seconds: number) => {
        nowMs += seconds * 1000;
      },
      look,
      untold: () => isUntold(begin()),
      /** The attempt that a look has begun. */
      attempt: async () => {
        const woken = new Promise<void>((resolve) => {
          waking.resolve = resolve;
        });
        assert.equal(look(), undefined);
        await woken;
        return begin().memory.notification!;
      },
      /** Writes the status as the reconcile does. */
      write: () => Object.assign(run.status!, { notification: begin().memory.notification }),
      /** Another process takes over. */
      forget: () => {
        memory = { notification: undefined };
      },
    };
  }

  test("It receives the end once", async () => {
    status = 204;
    const it = looking({ url: address(), timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 });
    assert.equal(it.untold(), true);
    const message = "the webhook was delivered";
    const delivered = { state: "Delivered", attempts: 1, lastAttemptTime: at(0), message };
    assert.deepEqual(await it.attempt(), delivered);
    assert.deepEqual(it.told.slice(0, 1), [`WebhookDelivered: ${message}`]);
    assert.match(it.logged[0]!, /the receiver answered 204/);
    for (const step of [it.look, it.write, it.look, it.forget, it.look]) step();
    await sleep(50);
    assert.equal(bodies.length, 1);
    assert.equal(it.untold(), false);
    assert.equal(bodies[0]!.id, `${it.run.metadata.uid}-Succeeded`);
  });

  test("A run that is resumed during the call is reported again at its next end", async () => {
    status = 204;
    const conditions = [{ type: "Succeeded", status: "False", reason: "RunFailed", message: "the disk is full" }];
    const failed = { ...ENDED, phase: "Failed", conditions };
    const it = looking({ url: address(), timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 }, failed);
    it.look();
    Object.assign(it.run.status!, { completionTime: undefined, conditions: [] });
    await until(() => it.told.length > 0 || bodies.length > 0, "a call");
    await sleep(50);
    it.write();
    assert.deepEqual([it.run.status!.notification, it.told], [undefined, []]);
    Object.assign(it.run.status!, { ...failed, completionTime: at(5) });
    assert.equal((await it.attempt()).state, "Delivered");
    assert.deepEqual(
      bodies.map(({ id }) => id),
      [at(-10), at(5)].map((time) => `${it.run.metadata.uid}-Failed-${time}`),
    );
  });

  test("It is called again after pauses that double, with the same id, until it is given up", async () => {
    status = 500;
    const it = looking({ url: address(), timeoutSeconds: 5, maxAttempts: 3, backoffSeconds: 5 });
    for (const [attempts, pause] of [
      [1, 5],
      [2, 10],
    ] as const) {
      const { state, message } = await it.attempt();
      assert.deepEqual(
        [state, message],
        ["Pending", `the webhook was not delivered, attempt ${attempts} of 3: it is tried again`],
      );
      assert.equal(it.look(), undefined, "the attempt is recorded first");
      it.write();
      assert.equal(it.look(), pause);
      it.later(pause);
    }
    const { state, message } = await it.attempt();
    assert.equal(state, "GivenUp");
    assert.match(
      message!,
      /^the webhook was not delivered, 3 of 3 attempts: check spec\.notifications\.webhook, and the controller's log/,
    );
    it.write();
    assert.deepEqual([it.look(), it.untold(), bodies.length], [undefined, false, 3]);
    assert.equal(new Set(bodies.map(({ id }) => id)).size, 1);
    assert.match(it.told[0]!, /^WebhookGivenUp: /);
    assert.doesNotMatch(JSON.stringify([it.told, it.run.status]), new RegExp(`${SECRET}|500`));
  });

  test("A new controller keeps the count, and repeats a call that was not recorded", async () => {
    status = 503;
    const webhook = { url: address(), timeoutSeconds: 5, maxAttempts: 3, backoffSeconds: 5 };
    const it = looking(webhook);
    await it.attempt();
    it.write();
    it.forget();
    assert.equal(it.look(), 5);
    it.later(5);
    status = 200;
    assert.equal((await it.attempt()).attempts, 2);
    it.forget(); // before it was written
    assert.equal((await it.attempt()).state, "Delivered");
    assert.equal(bodies.length, 3);
  });

  test("A call that hangs delays no reconcile, and no second call begins meanwhile", async () => {
    status = undefined;
    const it = looking({ url: address(), timeoutSeconds: 0.3, maxAttempts: 1, backoffSeconds: 1 });
    const started = performance.now();
    const attempt = it.attempt();
    for (let look = 0; look < 10; look++) it.look();
    assert.ok(performance.now() - started < 200);
    assert.match((await attempt).message!, /1 of 1 attempts: check spec/);
    assert.equal(bodies.length, 1);
  });

  const REF = { secretKeyRef: { name: "hook", key: "url" } };
  const SECRETS: [what: string, secrets: Record<string, Record<string, string>>, message: RegExp][] = [
    ["there is none", {}, /there is no Secret hook$/],
    ["without the key", { hook: {} }, /Secret hook has no key url$/],
    ["with another thing in it", { hook: { url: btoa(SECRET) } }, /the webhook's url is no http or https address/],
  ];
  for (const [what, secrets, message] of SECRETS)
    test(`The message names the fault of the Secret: ${what}`, async () => {
      const it = looking({ urlFrom: REF, timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 }, ENDED, secrets);
      const notification: NotificationStatus = await it.attempt();
      assert.match(notification.message!, message);
      assert.doesNotMatch(JSON.stringify([notification, it.told]), new RegExp(SECRET));
    });

  test("The address comes from a Secret", async () => {
    status = 200;
    const secrets = { hook: { url: btoa(`${address()}\n`) } };
    const it = looking({ urlFrom: REF, timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 }, ENDED, secrets);
    assert.equal((await it.attempt()).state, "Delivered");
  });

  test("A webhook on an unlisted host is not called, and the message says who can list the host", async () => {
    for (const hosts of [[], ["hooks.example.com", "*.0.0.1"]]) {
      const webhook = { url: address(), timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 };
      const it = looking(webhook, ENDED, {}, hosts);
      const { state, message, attempts } = await it.attempt();
      assert.deepEqual([state, attempts, bodies.length], ["GivenUp", 1, 0]);
      assert.match(
        message!,
        /not on the controller's list; .* --webhook-allow, notifications\.allowedHosts of the chart$/,
      );
      assert.match(it.told[0]!, /^WebhookGivenUp: .*notifications\.allowedHosts/);
      assert.doesNotMatch(JSON.stringify([it.told, message]), /T0P|127\.0/);
    }
  });

  test("A run that goes on, or that names no webhook, is not reported", async () => {
    const webhook = { url: address(), timeoutSeconds: 5, maxAttempts: 6, backoffSeconds: 5 };
    assert.equal(looking(webhook, { phase: "Running" }).untold(), false);
    const it = looking(webhook, { phase: "Suspended", conditions: [] });
    assert.equal(it.look(), undefined);
    await sleep(20);
    assert.equal(bodies.length, 0);
    assert.equal(isUntold({ observed: observedOf(runOf({}, ENDED)) } as Look), false);
  });

  test("The report of a failed run has its reason", () => {
    const conditions = [{ type: "Succeeded", status: "False", reason: "RunFailed", message: "the disk is full" }];
    const tasks = [{ name: "a", best: 3 }];
    const several = runOf({ tasks: [{ name: "a" }, { name: "b" }] }, { ...ENDED, tasks });
    const { data } = eventOf(several);
    assert.deepEqual([data.task, data.tasks], ["a, b", tasks]);
    const event = eventOf(runOf({}, { ...ENDED, phase: "Failed", conditions, score: { best: 1 } }));
    assert.equal(event.type, "dev.longrun.trainingrun.failed");
    assert.equal(event.source, "/namespaces/team/trainingruns/quick");
    assert.deepEqual(JSON.parse(JSON.stringify(event.data)), {
      ...{ name: "quick", namespace: "team", task: "diamonds", phase: "Failed", message: "the disk is full" },
      ...{ iteration: 12, iterations: 100, completionTime: at(-10), score: { best: 1 } },
    });
  });
});
