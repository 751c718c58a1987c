/**
 * Certificates of one run: a certificate authority of its own, and the certificates that it signs: the learner's, the
 * controller's, the generators' and one for each actor.
 *
 * ECDSA P-256. A certificate's role is its subject's organizational unit (OU); the learner authorises each call by it
 * (`channel.ts`). An actor's certificate has the actor's name as its common name (CN), so an actor can use no other name. Each process gets a
 * folder with `ca.crt`, `tls.crt` and `tls.key` (PEM, the names of a Kubernetes TLS secret).
 */
import { webcrypto } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import "reflect-metadata"; // first: x509 does not load without it
import * as x509 from "@peculiar/x509";
import { makeFolder } from "./folders.ts";

export type Role = "learner" | "actor" | "controller" | "generator";
export const ROLES: readonly Role[] = ["learner", "actor", "controller", "generator"];
/** A learner serves actors and is a client of generators. */
const SERVERS: readonly Role[] = ["learner", "generator"];
const CLIENTS: readonly Role[] = ["learner", "actor", "controller"];

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

export interface Validity {
  /** Seconds of validity from now on. */
  validSeconds: number;
  /** Seconds of validity before now: clocks of two machines differ, and one may be set back. [300] */
  pastSeconds?: number;
  /** Injected clock, Unix milliseconds. */
  now?: () => number;
}

export interface KeyAndCertificate {
  /** PEM */
  certificate: string;
  /** PEM, PKCS #8 */
  key: string;
}

export interface TlsFiles extends KeyAndCertificate {
  /** PEM of the authority that signed, which peers are checked against */
  authority: string;
}

x509.cryptoProvider.set(webcrypto);

function window({ validSeconds, pastSeconds = 300, now = Date.now }: Validity): { notBefore: Date; notAfter: Date } {
  if (!(validSeconds > 0)) throw new RangeError(`validSeconds is ${validSeconds}: give a number above 0`);
  const at = now();
  return { notBefore: new Date(at - pastSeconds * 1000), notAfter: new Date(at + validSeconds * 1000) };
}

const newKeys = () =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as Promise<webcrypto.CryptoKeyPair>;

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", key);
  return x509.PemConverter.encode(pkcs8, "PRIVATE KEY");
}

/** Returns a new authority. Its key signs the run's certificates; no other process gets it. */
export async function createAuthority(validity: Validity, name = "longrun"): Promise<KeyAndCertificate> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ O: ["longrun"] }, { CN: [name] }],
    keys,
    signingAlgorithm: ALGORITHM,
    ...window(validity),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await keyPem(keys.privateKey) };
}

interface CertificateRequest extends Validity {
  role: Role;
  /** Common name: an actor's name, which the learner checks; in other certificates only for people. */
  name: string;
  /** DNS names and IP addresses at which the holder is dialled. Learners and generators serve. */
  hosts?: string[];
}

/** Returns a new key and a certificate for it, signed by `authority`. */
export async function createCertificate(authority: KeyAndCertificate, request: CertificateRequest): Promise<TlsFiles> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await webcrypto.subtle.importKey(
    "pkcs8",
    x509.PemConverter.decodeFirst(authority.key),
    ALGORITHM,
    false,
    ["sign"],
  );
  const keys = await newKeys();
  const serves = SERVERS.includes(request.role);
  const usage = [
    ...(serves ? [x509.ExtendedKeyUsage.serverAuth] : []),
    ...(CLIENTS.includes(request.role) ? [x509.ExtendedKeyUsage.clientAuth] : []),
  ];
  const names = (request.hosts ?? []).map((host) => ({ type: isIP(host) ? "ip" : "dns", value: host }) as const);
  if (serves && names.length === 0)
    throw new RangeError(`hosts is empty: name the addresses at which the ${request.role} is dialled`);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ O: ["longrun"] }, { OU: [request.role] }, { CN: [request.name] }],
    issuer: issuer.subjectName,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    ...window(request),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usage, true),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    authority: authority.certificate,
    certificate: certificate.toString("pem"),
    key: await keyPem(keys.privateKey),
  };
}

/** Writes `ca.crt`, `tls.crt` and `tls.key` (mode 0600) into `directory`, which is created (0700) if it does not exist. */
export async function writeTlsFiles(directory: string, files: TlsFiles): Promise<void> {
  makeFolder(directory, undefined, 0o700);
  await writeFile(join(directory, "ca.crt"), files.authority);
  await writeFile(join(directory, "tls.crt"), files.certificate);
  // A mode is applied to new files only.
  await rm(join(directory, "tls.key"), { force: true });
  await writeFile(join(directory, "tls.key"), files.key, { mode: 0o600 });
}

/** Folders of TLS files of a run on one machine. */
export interface RunCertificates {
  learner: string;
  controller: string;
  /** Writes a new certificate for the actor of this name. @returns its folder */
  actor(name: string): Promise<string>;
}

/**
 * Writes the certificates of a run on one machine: `directory/learner`, `directory/controller` and, for each requested actor,
 * `directory/NAME`. The authority's key is not written; it stays in this process's memory.
 */
export async function writeRunCertificates(
  directory: string,
  options: Validity & { hosts?: string[] },
): Promise<RunCertificates> {
  const authority = await createAuthority(options);
  const write = async (role: Role, name: string, hosts?: string[]) => {
    const path = join(directory, name);
    await writeTlsFiles(path, await createCertificate(authority, { ...options, role, name, hosts }));
    return path;
  };
  return {
    learner: await write("learner", "learner", options.hosts ?? ["localhost", "127.0.0.1", "::1"]),
    controller: await write("controller", "controller"),
    actor: (name) => write("actor", name),
  };
}
