/** Tests how the run waits for results, and when it gives up. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { messages } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import { leased, newLearner, until } from "./learners.fixture.ts";
import { TestActor, within } from "./server.fixture.ts";

describe("waiting", { concurrency: 6 }, () => {
  test("resolves at the requested number", async () => {
    const { actor, lease, server } = await leased();
    const wait = server.waitForFinished(1);
    actor.handIn(lease.attempt);
    assert.equal(await within(wait, "the wait"), 1);
  });

  test("resolves with fewer when no execution is left that could finish", async () => {
    const { actor, lease, server, store } = await leased({ store: { maxAttempts: 1 } });
    store.addSamples([newSample("n", { state: "notExecuted" })]);
    const wait = server.waitForFinished(2);
    actor.handIn(lease.attempt, { header: { outcome: messages.Outcome.LOST } });
    assert.equal(await within(wait, "the wait"), 1);
  });

  test("gives up if no other process brings actors, and names the blocker in the status and the error", async () => {
    const { server, store, status } = await newLearner();
    store.addSamples([newSample("a")]);
    const heard: string[] = [];
    const wait = server.waitForFinished(1, {
      idleSeconds: 0.2,
      reportSeconds: 0.05,
      onBlocked: ({ reason }) => heard.push(`${reason}: ${status.current.message}`),
    });
    await assert.rejects(wait, {
      name: "ServerError",
      code: "stalled",
      message: /no actor is connected: 1 execution queued, 0 running/,
    });
    assert.ok(heard.length >= 2);
    assert.match(heard[0], /^NoActors: no actor is connected/);
  });

  test("waits for actors without end and says since when there is none", async () => {
    const before = Date.now();
    const { learner, actor, lease, server, status } = await leased();
    const wait = server.waitForFinished(1, { stallSeconds: 0.05, reportSeconds: 0.05 });
    await sleep(300); // a running program is waited for
    actor.vanish();
    const gone = Date.now();
    await until(() => status.current.blocked === "NoActors", "the status names it");
    const since = status.current.blockedSinceUnixMs ?? 0;
    assert.ok(since >= gone - 100 && since <= Date.now(), `${since} is when the actor left, not ${before}`);
    await sleep(300);
    assert.equal(status.current.blockedSinceUnixMs, since);
    const next = new TestActor(learner.address, "actor-0");
    await next.hello({ slots: 1, holding: [lease.attempt] });
    next.handIn(lease.attempt);
    assert.equal(await within(wait, "the wait"), 1);
    assert.deepEqual([status.current.blocked, status.current.blockedSinceUnixMs], ["", 0]);
  });

  test("gives up if leases have ended without a result", async () => {
    const { server } = await leased({ store: { leaseSeconds: 0.2 }, tickSeconds: 3600 });
    const wait = server.waitForFinished(1, { stallSeconds: 0.2 });
    await assert.rejects(within(wait, "the end of the wait"), {
      code: "stalled",
      message: /^no result \d+ s after the end of a lease: programs run on 1 actor/,
    });
  });

  test("ends with the end or the error of the other work, which is no reason for a warning", async () => {
    const { server } = await newLearner();
    const heard: string[] = [];
    const onBlocked = ({ reason }: { reason: string }) => heard.push(reason);
    const other = sleep(150);
    await within(server.waitForChange({ reportSeconds: 0.05, onBlocked, other }), "the other's end");
    assert.deepEqual(heard, [], "that no execution is in flight says nothing");
    const failing = sleep(20).then(() => Promise.reject(new Error("a worker has ended")));
    await assert.rejects(server.waitForChange({ other: failing }), /a worker has ended/);
  });

  test("resolves at a lease, which is a change", async () => {
    const { server, store } = await newLearner();
    store.addSamples([newSample("a")]);
    const wait = server.waitForChange();
    store.leases.takeAll(["actor-0"]);
    await within(wait, "the lease");
  });

  test("ends with the reason of its signal", async () => {
    const { server, store } = await newLearner();
    store.addSamples([newSample("a")]);
    const controller = new AbortController();
    const wait = server.waitForFinished(1, { signal: controller.signal });
    controller.abort(new Error("SIGTERM"));
    await assert.rejects(wait, /SIGTERM/);
    await assert.rejects(server.waitForFinished(1, { signal: controller.signal }), /SIGTERM/);
  });
});
