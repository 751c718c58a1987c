import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { createAuthority, createCertificate, writeRunCertificates, writeTlsFiles } from "./certificates.ts";
import { clientCredentials, nameOf, requireRole, roleOf, serverCredentials } from "./channel.ts";
import { channelOptions, clientOptions, LearnerStatusClient, LearnerStatusService } from "./service.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-certificates-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const HOUR = 3600;

test("A learner's certificate has its role, names and validity, signed by the run's authority", async () => {
  const now = () => Date.UTC(2030, 0, 1);
  const authority = await createAuthority({ validSeconds: 2 * HOUR, now });
  const files = await createCertificate(authority, {
    role: "learner",
    name: "run-1",
    hosts: ["run-1.default.svc", "10.0.0.7", "::1"],
    validSeconds: HOUR,
    now,
  });
  const certificate = new X509Certificate(files.certificate);
  const ca = new X509Certificate(files.authority);
  assert.ok(certificate.verify(ca.publicKey) && certificate.checkIssued(ca));
  assert.ok(ca.ca && !certificate.ca);
  assert.equal(certificate.subject, "O=longrun\nOU=learner\nCN=run-1");
  assert.equal(certificate.checkHost("run-1.default.svc"), "run-1.default.svc");
  assert.equal(certificate.checkHost("run-2.default.svc"), undefined);
  assert.equal(certificate.checkIP("10.0.0.7"), "10.0.0.7");
  assert.equal(certificate.checkIP("::1"), "::1");
  assert.equal(new Date(certificate.validTo).getTime(), now() + HOUR * 1000);
  assert.ok(new Date(certificate.validFrom).getTime() < now());
  assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
});

test("Processes that start after the clock was set back a day trust certificates that allow it", async () => {
  const day = 24 * HOUR;
  const validFrom = async (validity: { pastSeconds?: number }) => {
    const paths = await writeRunCertificates(join(folder, `past-${validity.pastSeconds}`), {
      ...validity,
      validSeconds: HOUR,
    });
    const files = ["ca.crt", "tls.crt"].map((name) => new X509Certificate(readFileSync(join(paths.learner, name))));
    return Math.max(...files.map((it) => new Date(it.validFrom).getTime()));
  };
  assert.ok((await validFrom({ pastSeconds: 2 * day })) < Date.now() - day * 1000);
  assert.ok((await validFrom({})) > Date.now() - HOUR * 1000);
});

test("Bad requests are refused with the field's name", async () => {
  await assert.rejects(createAuthority({ validSeconds: 0 }), /validSeconds is 0/);
  await assert.rejects(createAuthority({ validSeconds: Number.NaN }), /validSeconds is NaN/);
  const authority = await createAuthority({ validSeconds: HOUR });
  await assert.rejects(
    createCertificate(authority, { role: "learner", name: "x", validSeconds: HOUR }),
    /hosts is empty/,
  );
});

test("A run's files are a folder for each process, with keys for their owner only and no authority's key", async () => {
  const paths = await writeRunCertificates(join(folder, "run"), { validSeconds: HOUR });
  const keys = new Set<string>();
  for (const path of [paths.learner, paths.controller, await paths.actor("actor-0"), await paths.actor("actor-1")]) {
    assert.deepEqual(readdirSync(path), ["ca.crt", "tls.crt", "tls.key"]);
    assert.equal(statSync(join(path, "tls.key")).mode & 0o777, 0o600);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    keys.add(readFileSync(join(path, "tls.key"), "utf8"));
    const key = readFileSync(join(path, "tls.key"));
    assert.ok(
      new X509Certificate(readFileSync(join(path, "tls.crt"))).checkPrivateKey(
        (await import("node:crypto")).createPrivateKey(key),
      ),
    );
  }
  assert.equal(keys.size, 4);
});

test("Files are replaced, and a key that others could read is made private", async () => {
  const authority = await createAuthority({ validSeconds: HOUR });
  const directory = join(folder, "again");
  const files = await createCertificate(authority, { role: "actor", name: "a", validSeconds: HOUR });
  await writeTlsFiles(directory, files);
  rmSync(join(directory, "tls.key"));
  writeFileSync(join(directory, "tls.key"), "old", { mode: 0o644 });
  await writeTlsFiles(directory, files);
  assert.equal(statSync(join(directory, "tls.key")).mode & 0o777, 0o600);
  assert.equal(readFileSync(join(directory, "tls.key"), "utf8"), files.key);
});

test("A folder without the files is named", () => {
  const missing = { name: "ChannelError", code: "tlsFile", message: /no-such\/ca.crt cannot be read: --tls/ };
  assert.throws(() => clientCredentials(join(folder, "no-such")), missing);
  assert.throws(() => serverCredentials(join(folder, "no-such")), missing);
});

test("The name of a certificate is its one CN", () => {
  const callOf = (subject: unknown) => ({
    getAuthContext: () =>
      ({ sslPeerCertificate: { subject } }) as ReturnType<Parameters<typeof nameOf>[0]["getAuthContext"]>,
    getPeer: () => "10.0.0.9:1234",
  });
  assert.equal(nameOf(callOf({ OU: "actor", CN: "actor-0" })), "actor-0");
  for (const subject of [{ OU: "actor" }, { CN: "" }, { CN: ["actor-0", "actor-1"] }, undefined])
    assert.throws(() => nameOf(callOf(subject)), { code: "unauthenticated", message: /no name/ });
});

const subjects: [string, unknown, string | RegExp][] = [
  ["an actor", { OU: "actor" }, "actor"],
  ["a controller", { OU: "controller" }, "controller"],
  ["no unit", {}, /no role/],
  ["a unit that is no role", { OU: "admin" }, /no role/],
  ["two units", { OU: ["actor", "controller"] }, /no role/],
  ["a name of Object.prototype", { OU: "constructor" }, /no role/],
  ["no certificate", undefined, /no role/],
];
for (const [name, subject, expected] of subjects) {
  test(`roleOf reads the role of ${name}`, () => {
    const call = {
      getAuthContext: () =>
        ({ sslPeerCertificate: subject && { subject } }) as ReturnType<Parameters<typeof roleOf>[0]["getAuthContext"]>,
      getPeer: () => "10.0.0.9:1234",
    };
    if (typeof expected === "string") assert.equal(roleOf(call), expected);
    else assert.throws(() => roleOf(call), { code: "unauthenticated", message: expected });
    if (expected === "actor")
      assert.throws(() => requireRole(call, "controller"), {
        code: "permissionDenied",
        message: /for role controller; .* says actor/,
      });
  });
}

/** Serves with one certificate, calls with another. @returns the status code of the call */
async function call(server: string, client: string, address = "127.0.0.1"): Promise<number> {
  const learner = new grpc.Server(channelOptions());
  learner.addService(LearnerStatusService, {
    watch: (stream: grpc.ServerWritableStream<object, object>) => stream.end(),
  });
  const port = await new Promise<number>((resolve, reject) =>
    learner.bindAsync("127.0.0.1:0", serverCredentials(server), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const target = `${address}:${port}`;
  const watcher = new LearnerStatusClient(target, clientCredentials(client), clientOptions(target));
  try {
    return await new Promise((resolve) => {
      const stream = watcher.watch();
      stream.on("error", () => {});
      stream.on("status", ({ code }) => resolve(code));
      stream.resume();
    });
  } finally {
    watcher.close();
    learner.forceShutdown();
  }
}

test("Each role can talk to the intended roles only", async () => {
  const authority = await createAuthority({ validSeconds: HOUR });
  const other = await createAuthority({ validSeconds: HOUR });
  const past = () => Date.now() - 10 * HOUR * 1000;
  const make = async (name: string, ...[by, request]: Parameters<typeof createCertificate>) => {
    const path = join(folder, name);
    await writeTlsFiles(path, { ...(await createCertificate(by, request)), authority: authority.certificate });
    return path;
  };
  const hosts = ["localhost", "127.0.0.1"];
  const learner = await make("learner", authority, { role: "learner", name: "l", hosts, validSeconds: HOUR });
  const elsewhere = await make("elsewhere", authority, {
    role: "learner",
    name: "l",
    hosts: ["example.org"],
    validSeconds: HOUR,
  });
  const impostor = await make("impostor", other, { role: "learner", name: "l", hosts, validSeconds: HOUR });
  const actor = await make("actor", authority, { role: "actor", name: "a", hosts, validSeconds: HOUR });
  const expired = await make("expired", authority, { role: "actor", name: "a", validSeconds: HOUR, now: past });
  const stranger = await make("stranger", other, { role: "actor", name: "a", validSeconds: HOUR });
  const generator = await make("generator", authority, { role: "generator", name: "g", hosts, validSeconds: HOUR });
  const cases: [string, string, number][] = [
    [learner, actor, grpc.status.OK],
    [elsewhere, actor, grpc.status.UNAVAILABLE],
    [impostor, actor, grpc.status.UNAVAILABLE],
    [actor, actor, grpc.status.UNAVAILABLE], // an actor's certificate does not serve
    [learner, expired, grpc.status.UNAVAILABLE],
    [learner, stranger, grpc.status.UNAVAILABLE],
    [learner, learner, grpc.status.OK], // the learner dials generators; its role limits it elsewhere
    [generator, learner, grpc.status.OK],
    [learner, generator, grpc.status.UNAVAILABLE], // a generator's does not dial
  ];
  for (const [server, client, expected] of cases)
    assert.equal(await call(server, client), expected, `${server} <- ${client}`);
  assert.equal(await call(learner, actor, "localhost"), grpc.status.OK);
});
