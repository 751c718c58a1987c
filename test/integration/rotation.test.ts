/**
 * Changes a run's certificate authority while a program runs: secrets as the controller makes them, files as the kubelet delivers them, and
 * a learner's server and an actor's client that are not restarted.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect as dialTls } from "node:tls";
import { ActorClient } from "../../actor/client.ts";
import { lostResult } from "../../actor/execution.ts";
import {
  type CertificateSecrets,
  controllerCertificate,
  ensureCertificates,
  ensureSigned,
  type SecretData,
} from "../../controller/operator/parts/certificates/certificates.ts";
import { LearnerLinks } from "../../controller/operator/parts/learner/learner-link.ts";
import { startLearner, TestActor } from "../../learner/server/server.fixture.ts";
import { newSample, scratchFolder } from "../../learner/store/store.fixture.ts";
import { type TlsFiles, writeTlsFiles } from "../../proto/certificates.ts";
import { PROTOCOL_VERSION } from "../../proto/service.ts";
import { until } from "../until.ts";

const HOST = "quickstart-learner.default.svc";
const DISTRIBUTE_SECONDS = 60;
const KEY = "default/quickstart";
const folder = scratchFolder();
const stops: (() => unknown)[] = [];
after(async () => {
  for (const stop of stops.reverse()) await stop();
});

const filesOf = (data: SecretData | undefined): TlsFiles => {
  const [authority, certificate, key] = ["ca.crt", "tls.crt", "tls.key"].map((name) =>
    Buffer.from(data?.[name] ?? "", "base64").toString(),
  ) as [string, string, string];
  return { authority, certificate, key };
};
const fingerprint = (data: SecretData | undefined) => new X509Certificate(filesOf(data).certificate).fingerprint256;

test("A change of the authority loses no running execution", async () => {
  // TLS uses the real clock; `renewShare` and an advanced `now` make certificates due.
  type Secrets = CertificateSecrets & { actor?: SecretData };
  const ensure = async (secrets: Secrets, renewShare: number, aheadSeconds = 0) => {
    const now = Date.now() + aheadSeconds * 1000;
    const times = { authoritySeconds: 7200, leafSeconds: 3600, renewShare, distributeSeconds: DISTRIBUTE_SECONDS };
    const { write } = await ensureCertificates(secrets, { name: "quickstart", hosts: [HOST, "localhost"], now, times });
    const authority = write.authority ?? secrets.authority!;
    const actor = await ensureSigned(authority, secrets.actor, {
      role: "actor",
      name: "actor-0",
      hosts: [],
      now,
      times,
    });
    return { ...secrets, ...write, ...(actor.write && { actor: actor.write }) };
  };
  const tls = (role: "learner" | "actor") => join(folder, role);
  const bring = (secrets: Secrets, role: "learner" | "actor") => writeTlsFiles(tls(role), filesOf(secrets[role]));

  const before = await ensure({}, 1);
  await bring(before, "learner");
  await bring(before, "actor");
  const learner = await startLearner({ tlsDirectory: tls("learner"), tlsRefreshSeconds: 0.05 });
  stops.push(learner.stop);
  const lost: unknown[] = [];
  learner.store.events.on("attemptLost", (...what) => lost.push(what));
  learner.store.addSamples([newSample("a")]);
  const wire = await cuttable(learner.server.port);

  const program = Promise.withResolvers<void>();
  let started = 0;
  const actor = new ActorClient({
    address: `127.0.0.1:${wire.port}`,
    tlsDirectory: tls("actor"),
    ...{ name: "actor-0", slots: 1, isolationLevel: "none", maxReconnectSeconds: 0.1 },
    execute: async () => {
      started++;
      await program.promise;
      return { ...lostResult(""), outcome: "completed" };
    },
  });
  stops.push(() => actor.stop());
  void actor.run();
  await until(() => started === 1, "the program's start");

  let authority = before.authority;
  const links = new LearnerLinks({
    dial: async () => ({ address: `127.0.0.1:${learner.server.port}`, close: () => {} }),
    certificates: () => controllerCertificate(authority!, { name: "quickstart", now: Date.now() }),
    onChange: () => {},
  });
  stops.push(() => links.close());
  const controllerConnects = async () => {
    links.drop(KEY);
    links.ensure(KEY, { uid: "1", serverName: HOST });
    await until(() => links.observed(KEY)?.connected === true, "the controller's connection");
  };
  await controllerConnects();

  // A new authority is distributed everywhere before it signs anything.
  const distributed = await ensure(before, 0.0001);
  assert.ok(distributed.authority?.["next.key"]);
  const signer = new X509Certificate(filesOf(before.learner).authority).publicKey;
  assert.ok(new X509Certificate(filesOf(distributed.learner).certificate).verify(signer));
  await bring(distributed, "learner");
  await bring(distributed, "actor");
  authority = distributed.authority;
  await controllerConnects();

  // Now it signs: the learner's files arrive first, and the actor has the old ones for a while.
  const signed = await ensure(distributed, 1, DISTRIBUTE_SECONDS + 1);
  assert.ok(!new X509Certificate(filesOf(signed.learner).certificate).verify(signer));
  authority = signed.authority;
  await bring(signed, "learner");
  await until(
    async () => (await shown(learner.server.port, before.actor)) === fingerprint(signed.learner),
    "new files",
  );
  assert.deepEqual([wire.connections, learner.server.actors()[0]?.connected], [1, true], "open connections stay open");
  await controllerConnects();
  wire.cut();
  await until(
    () => wire.connections >= 2 && learner.server.actors()[0]?.connected === true,
    "the actor with old files",
  );
  await bring(signed, "actor");
  const connections = wire.connections;
  wire.cut();
  await until(
    () => wire.connections > connections && learner.server.actors()[0]?.connected === true,
    "the actor with new files",
  );

  program.resolve();
  await until(() => learner.store.counts().completed === 1, "the result");
  const [sample] = learner.store.samples(["a"]);
  assert.deepEqual([sample?.attempts, sample?.result?.actor, started, lost], [1, "actor-0", 1, []]);

  // When the old authority is no longer trusted, its certificates are refused.
  const ca = filesOf(signed.learner).authority.split(/(?<=-----END CERTIFICATE-----\n)/)[0]!;
  await writeTlsFiles(tls("learner"), { ...filesOf(signed.learner), authority: ca });
  await writeTlsFiles(join(folder, "old"), { ...filesOf(before.actor), authority: ca });
  await until(async () => {
    const stranger = new TestActor(learner.address, "actor-0", join(folder, "old"));
    let refused = false;
    void stranger.status.then(() => {
      refused = true;
    });
    stranger.send({ hello: { protocolVersion: PROTOCOL_VERSION, actor: "actor-0", isolationLevel: "none", slots: 1 } });
    await until(() => refused || stranger.has("welcome"), "an answer to an old certificate");
    stranger.vanish();
    return refused;
  }, "the refusal of an old certificate");
});

/** Returns the fingerprint of the learner's current certificate. */
async function shown(port: number, actor: SecretData | undefined): Promise<string> {
  const { certificate, key } = filesOf(actor);
  const socket = dialTls({ port, host: "127.0.0.1", cert: certificate, key, rejectUnauthorized: false });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Returns a connection to `target` that can be cut. */
async function cuttable(target: number) {
  const sockets = new Set<Socket>();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const wire = { port: 0, connections: 0, cut };
  const server = createServer((near) => {
    wire.connections++;
    const far = dial(target, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  wire.port = (server.address() as { port: number }).port;
  stops.push(() => server.close(), wire.cut);
  return wire;
}
