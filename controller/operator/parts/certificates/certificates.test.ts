import assert from "node:assert/strict";
import { webcrypto, X509Certificate } from "node:crypto";
import { test } from "node:test";
import "reflect-metadata"; // first: x509 does not load without it
import * as x509 from "@peculiar/x509";
import {
  CERTIFICATE_TIMES,
  type CertificateSecrets,
  controllerCertificate,
  type EnsuredCertificates,
  ensureCertificates,
  ensureSigned,
  type SecretData,
} from "./certificates.ts";

const DAY_MS = 24 * 3600 * 1000;
const HOSTS = ["quickstart-learner.default.svc", "quickstart-learner.default.svc.cluster.local"];
const START = Date.UTC(2030, 0, 1);

const ACTOR = "quickstart-actor-0-0";
/** The secrets of a run with one actor. */
type Secrets = CertificateSecrets & { actor?: SecretData | undefined };

/** Ensures certificates in the controller's order: the authority and the learner first, then the actor. */
async function ensure(observed: Secrets, now: number, hosts = HOSTS, actorName = ACTOR) {
  const run = await ensureCertificates(observed, { name: "quickstart", hosts, now });
  const authority = run.write.authority ?? observed.authority!;
  const actor = await ensureSigned(authority, observed.actor, { role: "actor", name: actorName, hosts: [], now });
  const write: Secrets = { ...run.write, ...(actor.write && { actor: actor.write }) };
  const reasons = [...run.reasons, ...(actor.reason ? [actor.reason] : [])];
  const [renewAtMs, expireAtMs] = (["renewAtMs", "expireAtMs"] as const).map((it) => Math.min(run[it], actor[it]));
  return { write, reasons, renewAtMs, expireAtMs } as Omit<EnsuredCertificates, "write"> & { write: Secrets };
}

const pem = (data: Record<string, string> | undefined, file: string) =>
  Buffer.from(data?.[file] ?? "", "base64").toString();
const certificates = (bundle: string) =>
  bundle
    .split(/(?<=-----END CERTIFICATE-----\n)/)
    .filter(Boolean)
    .map((one) => new X509Certificate(one));
const leafOf = (secrets: Secrets, role: "learner" | "actor") => new X509Certificate(pem(secrets[role], "tls.crt"));
const trusted = (data: Record<string, string> | undefined) => certificates(pem(data, "ca.crt"));

/** Whether a process with `data` accepts `leaf` at `now`. */
const accepts = (data: Record<string, string> | undefined, leaf: X509Certificate, now: number) =>
  leaf.validToDate.getTime() > now &&
  trusted(data).some((ca) => leaf.verify(ca.publicKey) && ca.validToDate.getTime() > now);

test("A new run gets an authority and two leaf certificates, which stay until the first renewal", async () => {
  const { write, reasons, renewAtMs } = await ensure({}, START);
  assert.deepEqual(Object.keys(write).sort(), ["actor", "authority", "learner"]);
  assert.deepEqual(reasons, [
    "a certificate authority was made",
    "the certificate of the learner was made",
    `the certificate of ${ACTOR} was made`,
  ]);
  assert.deepEqual(Object.keys(write.authority!).sort(), ["ca.crt", "ca.key"]);
  for (const role of ["learner", "actor"] as const) {
    assert.deepEqual(Object.keys(write[role]!).sort(), ["ca.crt", "tls.crt", "tls.key"]);
    assert.match(leafOf(write, role).subject, new RegExp(`OU=${role}`));
    assert.ok(accepts(write.actor, leafOf(write, role), START));
    assert.ok(!pem(write[role], "tls.key").includes(pem(write.authority, "ca.key")));
  }
  for (const host of HOSTS) assert.equal(leafOf(write, "learner").checkHost(host), host);
  assert.ok(
    Math.abs((await ensure(write, START)).expireAtMs - (START + 30 * DAY_MS)) < 0.01 * DAY_MS,
    "a leaf is first",
  );
  assert.ok(Math.abs(renewAtMs - (START + 20 * DAY_MS)) < 0.01 * DAY_MS, new Date(renewAtMs).toISOString());
  for (const now of [START, START + DAY_MS, renewAtMs - 1000])
    assert.deepEqual((await ensure(write, now)).write, {}, new Date(now).toISOString());
  const renewed = await ensure(write, renewAtMs);
  assert.deepEqual(Object.keys(renewed.write).sort(), ["actor", "learner"]);
  assert.deepEqual(renewed.reasons, [
    "the certificate of the learner was renewed",
    `the certificate of ${ACTOR} was renewed`,
  ]);
  assert.ok(renewed.renewAtMs > renewAtMs + 19 * DAY_MS);
});

test("The controller's own certificate has its role, and the run's authority has signed it", async () => {
  const { write } = await ensure({}, START);
  const files = await controllerCertificate(write.authority!, { name: "quickstart", now: START });
  assert.match(new X509Certificate(files.certificate).subject, /OU=controller/);
  assert.ok(accepts(write.learner, new X509Certificate(files.certificate), START));
  assert.equal(files.authority, pem(write.learner, "ca.crt"));
  await assert.rejects(controllerCertificate({}, { name: "quickstart", now: START }), /authority of run quickstart/);
});

test("For three years, processes with files of the last hour and processes with new files trust each other", async () => {
  let secrets = (await ensure({}, START)).write;
  let held = secrets;
  let authorities = new Set(trusted(secrets.learner).map(({ fingerprint256 }) => fingerprint256));
  let looks = 0;
  for (let now = START; now < START + 3 * 365 * DAY_MS; ) {
    const { write, renewAtMs } = await ensure(secrets, now);
    const next = { ...secrets, ...write };
    for (const role of ["learner", "actor"] as const) {
      const other = role === "learner" ? "actor" : "learner";
      const when = `${role} at ${new Date(now).toISOString()}`;
      assert.ok(accepts(held[other], leafOf(next, role), now), `new ${when} is refused`);
      assert.ok(accepts(next[other], leafOf(held, role), now), `held ${when} is refused`);
      assert.ok(accepts(next[other], leafOf(next, role), now + 9 * DAY_MS), `${when} ends too soon`);
    }
    const own = await controllerCertificate(next.authority!, { name: "quickstart", now });
    assert.ok(accepts(held.learner, new X509Certificate(own.certificate), now), "the controller is refused");
    assert.ok(trusted(next.learner).length <= 2);
    assert.deepEqual((await ensure(next, now)).write, {}, "a second look changes nothing");
    authorities = authorities.union(new Set(trusted(next.learner).map(({ fingerprint256 }) => fingerprint256)));
    assert.ok(renewAtMs > now, "looks again later, not at once");
    // Processes have the files of an hour ago when the next change comes, never older ones.
    held = next;
    secrets = next;
    now = renewAtMs;
    looks++;
  }
  assert.equal(authorities.size, 5, "renewed every eight months");
  assert.ok(looks < 80, `${looks} looks`);
});

test("Damaged, missing or wrong certificates are made again, and the others stay", async (t) => {
  const { write: whole } = await ensure({}, START);
  const other = (await ensure({}, START)).write;
  const cases: [string, Secrets, string[], RegExp][] = [
    ["no learner secret", { ...whole, learner: undefined }, ["learner"], /certificate of the learner was made/],
    [
      "actor with the key of another certificate",
      { ...whole, actor: { ...whole.actor, "tls.key": whole.learner!["tls.key"]! } },
      ["actor"],
      /certificate of quickstart-actor-0-0 was made/,
    ],
    ["garbage", { ...whole, actor: { "tls.crt": "eHg=", "tls.key": "" } }, ["actor"], /made/],
    [
      "learner with the actor's pair",
      { ...whole, learner: whole.actor },
      ["learner"],
      /replaced: it was not of role learner/,
    ],
    ["actor of another authority", { ...whole, actor: other.actor }, ["actor"], /signed by the new authority/],
    ["ca.crt edited", { ...whole, actor: { ...whole.actor, "ca.crt": "" } }, ["actor"], /^$/],
    ["a file more", { ...whole, actor: { ...whole.actor, "ca.key": "" } }, ["actor"], /^$/],
    [
      "authority without its key",
      { ...whole, authority: { "ca.crt": whole.authority!["ca.crt"]! } },
      ["actor", "authority", "learner"],
      /unusable authority was replaced/,
    ],
    [
      "authority gone",
      { ...whole, authority: undefined },
      ["actor", "authority", "learner"],
      /a certificate authority was made/,
    ],
  ];
  for (const [name, observed, changed, reason] of cases) {
    await t.test(name, async () => {
      const { write, reasons } = await ensure(observed, START);
      assert.deepEqual(Object.keys(write).sort(), changed);
      assert.match(reasons[0] ?? "", reason);
      const mended = { ...observed, ...write };
      assert.deepEqual((await ensure(mended, START)).write, {});
      assert.ok(accepts(mended.actor, leafOf(mended, "learner"), START));
    });
  }
});

test("New names of a learner renew its certificate alone", async () => {
  const { write } = await ensure({}, START);
  const { write: changed, reasons } = await ensure(write, START, [...HOSTS, "learner.example.org"]);
  assert.deepEqual(Object.keys(changed), ["learner"]);
  assert.deepEqual(reasons, ["the certificate of the learner was made for its new names"]);
});

test("An actor's certificate names the actor, and is made again if it names another", async () => {
  const { write } = await ensure({}, START);
  assert.ok(leafOf(write, "actor").subject.split("\n").includes(`CN=${ACTOR}`));
  const { write: changed, reasons } = await ensure(write, START, HOSTS, "quickstart-actor-0-1");
  assert.deepEqual(Object.keys(changed), ["actor"]);
  assert.deepEqual(reasons, [
    "the certificate of quickstart-actor-0-1 was replaced: it was not of quickstart-actor-0-1",
  ]);
  await assert.rejects(
    ensureSigned({}, undefined, { role: "actor", name: ACTOR, hosts: [], now: START }),
    /authority .* cannot be read/,
  );
});

const CLIENT_AUTHENTICATION = "1.3.6.1.5.5.7.3.2";

/** A learner's certificate as longrun 0.2 made it: for a server alone. */
async function servingAlone(authority: SecretData): Promise<SecretData> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const der = x509.PemConverter.decodeFirst(pem(authority, "ca.key"));
  const signingKey = await webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ O: ["longrun"] }, { OU: ["learner"] }, { CN: ["quickstart"] }],
    issuer: new x509.X509Certificate(pem(authority, "ca.crt")).subjectName,
    ...{ publicKey: keys.publicKey, signingKey, signingAlgorithm: algorithm },
    ...{ notBefore: new Date(START), notAfter: new Date(START + 30 * DAY_MS) },
    extensions: [
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth], true),
      new x509.SubjectAlternativeNameExtension(HOSTS.map((value) => ({ type: "dns", value }))),
    ],
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  return { "tls.crt": base64(certificate.toString("pem")), "tls.key": base64(key) };
}

test("A learner gets a certificate to dial generators, and all generators share one", async () => {
  const { write } = await ensure({}, START);
  const before = { ...write, learner: { ...write.learner!, ...(await servingAlone(write.authority!)) } };
  const asLearner = (dials: boolean) =>
    ensureCertificates(before, { name: "quickstart", hosts: HOSTS, dials, now: START });
  assert.deepEqual((await asLearner(false)).reasons, []);
  const { write: changed, reasons } = await asLearner(true);
  assert.deepEqual(reasons, ["the certificate of the learner was made for calls to generators"]);
  assert.ok(leafOf(changed, "learner").keyUsage!.includes(CLIENT_AUTHENTICATION));
  const hosts = ["quickstart-generators.default.svc"];
  const of = (secret: SecretData | undefined, now = START) =>
    ensureSigned(write.authority!, secret, { role: "generator", name: "quickstart", hosts, now });
  const made = await of(undefined);
  const leaf = new X509Certificate(pem(made.write, "tls.crt"));
  assert.deepEqual(leaf.subject.split("\n"), ["O=longrun", "OU=generator", "CN=quickstart"]);
  assert.equal(leaf.checkHost(hosts[0]!), hosts[0]);
  assert.ok(!leaf.keyUsage!.includes(CLIENT_AUTHENTICATION), "the generator dials no one");
  assert.equal((await of(made.write)).write, undefined);
  const renewed = await of(made.write, START + 21 * DAY_MS);
  assert.equal(renewed.reason, "the certificate of the generators was renewed");
});

test("After a long absence all certificates have expired and are made anew", async () => {
  const { write } = await ensure({}, START);
  const now = START + (CERTIFICATE_TIMES.authoritySeconds + 1) * 1000;
  const again = await ensure(write, now);
  assert.deepEqual(Object.keys(again.write).sort(), ["actor", "authority", "learner"]);
  assert.equal(trusted(again.write.learner).length, 1);
});
