import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { createAuthority, createCertificate, type TlsFiles } from "../../../../proto/certificates.ts";
import {
  channelOptions,
  LearnerControlService,
  LearnerStatusService,
  messages,
  type StatusMessage,
} from "../../../../proto/service.ts";
import { until } from "../../../../test/until.ts";
import { LearnerLinks, type LearnerLinksOptions, NotConnectedError } from "./learner-link.ts";

const { Phase } = messages;
const KEY = "default/quickstart";
const TARGET = { uid: "uid-1", serverName: "quickstart-learner.default.svc" };

const authority = await createAuthority({ validSeconds: 3600 });
const issue = (role: "learner" | "controller") =>
  createCertificate(authority, { role, name: role, validSeconds: 3600, hosts: [TARGET.serverName] });
const [learnerTls, controllerTls] = await Promise.all([issue("learner"), issue("controller")]);

const stops: (() => void)[] = [];
after(() => {
  for (const stop of stops) stop();
});

/** Starts a learner that the test controls. Its certificate names the Service, not the address that is dialled. */
async function startLearner(tls: TlsFiles = learnerTls, port = 0) {
  const server = new grpc.Server(channelOptions());
  const watchers: grpc.ServerWritableStream<unknown, StatusMessage>[] = [];
  const calls: [string, object][] = [];
  const suspended = Promise.withResolvers<void>();
  let first: StatusMessage = { phase: Phase.EXECUTING, iteration: 1 };
  server.addService(LearnerStatusService, {
    watch: (call: (typeof watchers)[number]) => {
      watchers.push(call);
      call.write(first);
    },
  });
  server.addService(LearnerControlService, {
    drainActors: (call: grpc.ServerUnaryCall<object, object>, answer: grpc.sendUnaryData<object>) => {
      calls.push(["drainActors", call.request]);
      answer(null, { notConnected: ["away"] });
    },
    suspend: async (call: grpc.ServerUnaryCall<object, object>, answer: grpc.sendUnaryData<object>) => {
      calls.push(["suspend", call.request]);
      await suspended.promise;
      answer(null, { checkpoint: { iteration: 3, path: "checkpoints/1-000003" }, running: 0 });
    },
    reportTerminations: (call: grpc.ServerUnaryCall<object, object>, answer: grpc.sendUnaryData<object>) => {
      calls.push(["reportTerminations", call.request]);
      answer(null, { outOfMemory: 1 });
    },
  });
  const [ca, key, certificate] = [tls.authority, tls.key, tls.certificate].map((pem) => Buffer.from(pem));
  const credentials = grpc.ServerCredentials.createSsl(ca!, [{ private_key: key!, cert_chain: certificate! }], true);
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, at) => (error ? reject(error) : resolve(at))),
  );
  const stop = () => server.forceShutdown();
  stops.push(stop);
  const push = (status: StatusMessage) => {
    first = status;
    for (const watcher of watchers) watcher.write(status);
  };
  const end = () => {
    for (const watcher of watchers.splice(0)) watcher.end();
  };
  return { port: bound, watchers, calls, suspended, push, end, stop };
}

function link(port: () => number, options: Partial<LearnerLinksOptions> = {}) {
  const changes: string[] = [];
  const closed: number[] = [];
  const links = new LearnerLinks({
    dial: async () => ({ address: `127.0.0.1:${port()}`, close: () => closed.push(port()) }),
    certificates: async () => controllerTls,
    onChange: (key) => changes.push(key),
    reconnectSeconds: 0.05,
    maxReconnectSeconds: 0.2,
    ...options,
  });
  stops.push(() => links.close());
  links.ensure(KEY, TARGET);
  return { links, changes, closed, observed: () => links.observed(KEY)! };
}

test("The link follows the status, keeps the newest one after the learner's death, and dials again", async () => {
  const learner = await startLearner();
  const { links, changes, closed, observed } = link(() => learner.port);
  assert.deepEqual([observed().connected, observed().error], [false, "not dialled yet"]);
  await until(() => observed().connected, "the first status");
  assert.equal(observed().status?.iteration, 1);
  assert.equal(observed().error, undefined);
  learner.push({ phase: Phase.TRAINING, iteration: 2, executions: { queued: 5 } });
  await until(() => observed().status?.iteration === 2, "the second status");
  assert.equal(observed().status?.executions?.queued, 5);
  const heard = changes.length;
  assert.ok(heard >= 2);

  learner.stop();
  await until(() => !observed().connected, "the break");
  assert.match(observed().error ?? "", /./);
  assert.equal(observed().status?.iteration, 2, "the last status stays");
  assert.ok(changes.length > heard);
  assert.equal(closed.length, 1, "the connection is closed");
  const again = await startLearner(learnerTls, learner.port);
  again.push({ phase: Phase.EXECUTING, iteration: 3 });
  await until(() => observed().status?.iteration === 3, "the restarted learner");
  links.drop(KEY);
  assert.equal(links.observed(KEY), undefined);
});

test("An invalid field is reported until all statuses have been valid for some time, also if none follows", async () => {
  const learner = await startLearner();
  const { observed } = link(() => learner.port, { nonsenseSeconds: 2 });
  await until(() => observed().connected, "the first status");
  const nonsense = () => observed().status?.nonsense;
  learner.push({ phase: Phase.TRAINING, iterationJson: "{" });
  await until(() => /^iterationJson is /.test(nonsense() ?? ""), "the invalid status");
  learner.push({ phase: Phase.TRAINING, iteration: 6 });
  await until(() => observed().status?.iteration === 6, "the valid status");
  assert.match(nonsense() ?? "", /^iterationJson/);
  learner.push({ phase: Phase.TRAINING, blocked: "constructor" });
  await sleep(2500);
  assert.match(nonsense() ?? "", /^iterationJson/, "the first field stays while statuses are invalid");
  learner.push({ phase: Phase.TRAINING, iteration: 7 });
  await until(() => observed().status?.iteration === 7 && nonsense() === undefined, "the end of the fault");
});

test("Calls reach the learner, and report that there is none", async () => {
  const learner = await startLearner();
  const { links, observed } = link(() => learner.port);
  await assert.rejects(links.drainActors(KEY, ["a"], "fewer"), NotConnectedError);
  await assert.rejects(links.suspend("default/other", { reason: "", drainSeconds: 1 }), NotConnectedError);
  await until(() => observed().connected, "the first status");
  assert.deepEqual(await links.drainActors(KEY, ["quickstart-actor-1-0", "away"], "fewer"), ["away"]);
  const termination = { actor: "a", slot: 1, reason: "OOMKilled", exitCode: 137, finishedUnixMs: 1_790_000_000_000 };
  assert.equal(await links.reportTerminations(KEY, [termination]), 1);
  const [drain, report] = learner.calls;
  assert.deepEqual({ ...drain![1] }, { actors: ["quickstart-actor-1-0", "away"], reason: "fewer" });
  assert.deepEqual({ ...(report![1] as { terminations: object[] }).terminations[0] }, termination);
});

test("A suspension gets its answer even if the status stream ends first", async () => {
  const learner = await startLearner();
  const { links, closed, observed } = link(() => learner.port);
  await until(() => observed().connected, "the first status");
  const answer = links.suspend(KEY, { reason: "spec.suspend is true", drainSeconds: 1 });
  await until(() => learner.calls.length === 1, "the call");
  learner.push({ phase: Phase.STOPPED });
  learner.end();
  await sleep(50);
  assert.equal(closed.length, 0, "the connection stays for the answer");
  learner.suspended.resolve();
  assert.equal((await answer).checkpoint?.iteration, 3);
  await until(() => closed.length > 0, "the connection's end");
});

test("A run that is over is dialled again only for another process of its learner", async () => {
  const learner = await startLearner();
  const { links, observed } = link(() => learner.port);
  await until(() => observed().connected, "the first status");
  learner.push({ phase: Phase.SUCCEEDED });
  learner.end();
  await until(() => !observed().connected, "the end");
  await sleep(300);
  assert.equal(learner.watchers.length, 0);
  links.ensure(KEY, TARGET);
  await sleep(300);
  assert.equal(learner.watchers.length, 0, "ensure keeps an existing link");
  links.ensure(KEY, { ...TARGET, instance: "pod-2" });
  await until(() => learner.watchers.length === 1, "the redial");
});

test("A run with an old name and another uid gets a new link", async () => {
  const learner = await startLearner();
  const { links, observed } = link(() => learner.port);
  await until(() => observed().connected, "the first status");
  links.ensure(KEY, { ...TARGET, uid: "uid-2" });
  assert.deepEqual([observed().connected, observed().status], [false, undefined]);
  await until(() => observed().connected, "the new link's status");
});

test("The link names each reason why it cannot connect, and waits for none for ever", async (t) => {
  const errors = async (port: number, options: Partial<LearnerLinksOptions>): Promise<string> => {
    const { links, observed } = link(() => port, { firstStatusSeconds: 0.3, ...options });
    await until(() => observed().error !== "not dialled yet", "an error");
    const { error } = observed();
    links.close();
    return error ?? "";
  };
  const learner = await startLearner();
  const other = await createAuthority({ validSeconds: 3600 });
  const stranger = await createCertificate(other, {
    role: "learner",
    name: "x",
    validSeconds: 3600,
    hosts: [TARGET.serverName],
  });
  const strange = await startLearner({ ...stranger, authority: authority.certificate });
  const wrongName = await startLearner(
    await createCertificate(authority, { role: "learner", name: "x", validSeconds: 3600, hosts: ["elsewhere"] }),
  );
  const cases: [string, Promise<string>, RegExp][] = [
    ["nobody listens", errors(1, {}), /ECONNREFUSED/],
    ["a learner of another authority", errors(strange.port, {}), /certificate/],
    ["a learner of another name", errors(wrongName.port, {}), /altnames|quickstart-learner/],
    [
      "dial fails",
      errors(learner.port, { dial: () => Promise.reject(new Error("no pod is ready")) }),
      /no pod is ready/,
    ],
    ["dial hangs", errors(learner.port, { dial: () => new Promise(() => {}) }), /not reached within 0.3 s/],
    ["no certificate", errors(learner.port, { certificates: () => Promise.reject(new Error("no CA")) }), /no CA/],
  ];
  for (const [name, error, expected] of cases) await t.test(name, async () => assert.match(await error, expected));
});

test("The link dials a learner again that accepts and never sends a status", async () => {
  const learner = await startLearner();
  learner.push({});
  const silent = new grpc.Server();
  let watches = 0;
  silent.addService(LearnerStatusService, { watch: () => void watches++ });
  const [ca, key, cert] = [learnerTls.authority, learnerTls.key, learnerTls.certificate].map((pem) => Buffer.from(pem));
  const credentials = grpc.ServerCredentials.createSsl(ca!, [{ private_key: key!, cert_chain: cert! }], true);
  const port = await new Promise<number>((resolve) =>
    silent.bindAsync("127.0.0.1:0", credentials, (_, at) => resolve(at)),
  );
  stops.push(() => silent.forceShutdown());
  const { observed } = link(() => port, { firstStatusSeconds: 0.2 });
  await until(() => watches >= 2, "the second watch");
  assert.match(observed().error ?? "", /no status from 127\.0\.0\.1:\d+ within 0\.2 s/);
  assert.equal(observed().status, undefined);
});

test("An invalid or oversized message ends the connection with a reason, and the delay before the next one grows", async () => {
  const server = new grpc.Server();
  let watches = 0;
  let answer = Buffer.from([0xff, 0xff, 0xff]);
  const watch = { ...LearnerStatusService.watch, responseSerialize: (bytes: Buffer) => bytes };
  server.addService(
    { watch } as unknown as typeof LearnerStatusService,
    {
      watch: (call: grpc.ServerWritableStream<unknown, unknown>) => {
        watches += 1;
        call.write(answer);
      },
    } as never,
  );
  const [ca, key, cert] = [learnerTls.authority, learnerTls.key, learnerTls.certificate].map((pem) => Buffer.from(pem));
  const credentials = grpc.ServerCredentials.createSsl(ca!, [{ private_key: key!, cert_chain: cert! }], true);
  const port = await new Promise<number>((resolve) =>
    server.bindAsync("127.0.0.1:0", credentials, (_, at) => resolve(at)),
  );
  stops.push(() => server.forceShutdown());
  const { observed } = link(() => port, { maxStatusBytes: 1000, maxReconnectSeconds: 0.4, random: () => 1 });
  await until(() => /that is no status of the protocol/.test(observed().error ?? ""), "the word on it");
  assert.equal(observed().connected, false);
  const path = "x".repeat(2000);
  answer = Buffer.from(messages.Status.encode({ message: path }).finish());
  await until(() => /larger than max/i.test(observed().error ?? ""), "the word on its length");
  const before = watches;
  await sleep(1000);
  assert.ok(watches - before <= 3, `${watches - before} connections in a second`);
});
