/**
 * The certificates of one TrainingRun on Kubernetes, and when each is renewed.
 *
 * One secret for the authority (its key is mounted nowhere), one for the learner, one for each actor and one for all
 * generators (`ca.crt`, `tls.crt`, `tls.key`). The existing secrets alone decide. Nothing is remembered between calls, so any
 * controller replica can continue.
 *
 * A change of authority breaks no connection. Processes reload changed files by themselves, but the kubelet updates mounted files
 * with a delay. Therefore every process trusts a new authority for `distributeSeconds` before that authority signs:
 *
 * | step | signs | `ca.crt` of every secret |
 * | --- | --- | --- |
 * | 2/3 of the authority's validity have passed | old | old, new |
 * | `distributeSeconds` later | new: all leaves are made again | new, old |
 * | the old one has expired | new | new |
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import {
  createAuthority,
  createCertificate,
  type KeyAndCertificate,
  type TlsFiles,
} from "../../../../proto/certificates.ts";

/** The extended key usage of a certificate that is shown to a server. */
const CLIENT_AUTHENTICATION = "1.3.6.1.5.5.7.3.2";

/** A secret's `data`: base64 by file name. */
export type SecretData = Record<string, string>;

/** Dates of the certificates in the secrets with these resource versions, found right; Unix milliseconds. */
export interface CertificateDates {
  versions: string;
  /** Whether the learner's certificate is also valid for calls to generators. */
  dials?: boolean;
  renewAtMs: number;
  expireAtMs: number;
}

/** Secrets of a run on the API server; absent: there is no such secret. */
export interface CertificateSecrets {
  /** `NAME-ca` */
  authority?: SecretData;
  /** `NAME-learner-tls` */
  learner?: SecretData;
}

interface CertificateTimes {
  /** Validity of an authority. [1 year] */
  authoritySeconds: number;
  /** Validity of the certificates that it signs. [30 days] */
  leafSeconds: number;
  /** A certificate is renewed when this share of its validity has passed. [2/3] */
  renewShare: number;
  /** How long a new authority is in every `ca.crt` before it signs; the kubelet takes up to 2 minutes. [1 hour] */
  distributeSeconds: number;
}

const DAY_SECONDS = 24 * 3600;

export const CERTIFICATE_TIMES: CertificateTimes = {
  authoritySeconds: 365 * DAY_SECONDS,
  leafSeconds: 30 * DAY_SECONDS,
  renewShare: 2 / 3,
  distributeSeconds: 3600,
};

interface CertificateOptions {
  /** Name of the run or of the actor: the certificate's common name. */
  name: string;
  /** DNS names of the learner's Service, by which it is dialled. */
  hosts: string[];
  /** Whether the learner dials generators: its certificate is then for clients too. */
  dials?: boolean;
  /** Unix milliseconds. */
  now: number;
  times?: Partial<CertificateTimes>;
}

export interface EnsuredCertificates {
  /** Whole data of the secrets that must be written; empty: all secrets are right. */
  write: CertificateSecrets;
  /** Event messages, one for each reason to write, e.g. `the learner's certificate was renewed`. */
  reasons: string[];
  /** Unix milliseconds: when to look again, if nothing changes before. */
  renewAtMs: number;
  /** Unix milliseconds: the first expiry of the signing authority and the leaves in use. */
  expireAtMs: number;
}

/** The required content of an actor's secret or of the generators' secret. */
interface EnsuredLeaf {
  /** Whole data of the secret; undefined: the secret is right. */
  write: SecretData | undefined;
  /** For an event; undefined: the certificate stays. */
  reason: string | undefined;
  /** Unix milliseconds. */
  renewAtMs: number;
  expireAtMs: number;
}

/** An authority as stored in its secret. */
interface Authority {
  signing: KeyAndCertificate;
  /** Distributed, does not sign yet. */
  next: KeyAndCertificate | undefined;
  /** PEM of earlier authorities that have not expired. */
  former: string[];
}

/**
 * Returns what the secrets of a run must hold now.
 *
 * An authority that cannot be read, or has expired, is replaced together with the learner's certificate. The learner's certificate
 * is also replaced if it is missing, damaged, due, not signed by the current authority, or not valid for `hosts`.
 */
export async function ensureCertificates(
  observed: CertificateSecrets,
  { name, hosts, dials = false, now, times }: CertificateOptions,
): Promise<EnsuredCertificates> {
  const t = { ...CERTIFICATE_TIMES, ...times };
  const write: CertificateSecrets = {};
  const reasons: string[] = [];

  const { authority, reason } = await ensureAuthority(observed.authority, name, now, t);
  if (reason !== undefined) reasons.push(reason);
  const authorityData = dataOfAuthority(authority);
  if (!sameData(observed.authority, authorityData)) write.authority = authorityData;
  const leaf = await ensureLeaf(authority, observed.learner, { role: "learner", name, hosts, dials, now, t });
  if (leaf.write !== undefined) write.learner = leaf.write;
  if (leaf.reason !== undefined) reasons.push(leaf.reason);
  const { signing, next, former } = authority;
  const looks = [
    ...[next ? signsFromMs(next, t) : renewalMs(signing.certificate, t), ...former.map(validToMs)],
    leaf.renewAtMs,
  ];
  const expireAtMs = Math.min(validToMs(signing.certificate), leaf.expireAtMs);
  return { write, reasons, renewAtMs: Math.max(now, Math.min(...looks)), expireAtMs };
}

/**
 * Returns what the secret of an actor, or of all generators, must hold now: one certificate in the name of the actor or of the run. It is
 * replaced for the same reasons as the learner's certificate.
 *
 * @param authority data of the run's `NAME-ca`, as `ensureCertificates` left it
 * @throws Error if `authority` cannot be read; `ensureCertificates` repairs it
 */
export async function ensureSigned(
  authority: SecretData,
  observed: SecretData | undefined,
  { times, ...request }: Omit<CertificateOptions, "dials"> & Pick<LeafRequest, "role">,
): Promise<EnsuredLeaf> {
  const found = readAuthority(authority, request.now);
  if (found === undefined) throw new Error(`the authority that signs for ${request.name} cannot be read`);
  return ensureLeaf(found, observed, { ...request, t: { ...CERTIFICATE_TIMES, ...times } });
}

interface LeafRequest {
  role: "learner" | "actor" | "generator";
  name: string;
  /** Empty: it does not serve. */
  hosts: string[];
  dials?: boolean;
  now: number;
  t: CertificateTimes;
}

const HOLDERS = { learner: "the learner", generator: "the generators" };

async function ensureLeaf(
  authority: Authority,
  observed: SecretData | undefined,
  request: LeafRequest,
): Promise<EnsuredLeaf> {
  const { role, name, hosts, now, t } = request;
  const found = readLeaf(observed);
  const why = found === undefined ? "made" : leafFault(found, authority, request);
  const leaf =
    found !== undefined && why === undefined
      ? found
      : await createCertificate(authority.signing, {
          role,
          name,
          validSeconds: t.leafSeconds,
          now: () => now,
          ...(hosts.length > 0 && { hosts }),
        });
  const data = dataOfLeaf({ ...leaf, authority: bundleOf(authority) });
  return {
    write: sameData(observed, data) ? undefined : data,
    reason: why && `the certificate of ${role === "actor" ? name : HOLDERS[role]} was ${why}`,
    renewAtMs: renewalMs(leaf.certificate, t),
    expireAtMs: validToMs(leaf.certificate),
  };
}

/**
 * A certificate of role `controller` for the calls to a run's learner; it is kept in memory only.
 *
 * @param authority data of the run's `NAME-ca`
 * @throws Error if `authority` cannot be read; `ensureCertificates` repairs it
 */
export async function controllerCertificate(
  authority: SecretData,
  { name, now, times }: Omit<CertificateOptions, "hosts" | "dials">,
): Promise<TlsFiles> {
  const found = readAuthority(authority, now);
  if (found === undefined) throw new Error(`the authority of run ${name} cannot be read`);
  const validSeconds = { ...CERTIFICATE_TIMES, ...times }.leafSeconds;
  const files = await createCertificate(found.signing, { role: "controller", name, validSeconds, now: () => now });
  return { ...files, authority: bundleOf(found) };
}

async function ensureAuthority(
  observed: SecretData | undefined,
  name: string,
  now: number,
  t: CertificateTimes,
): Promise<{ authority: Authority; reason?: string }> {
  const create = () => createAuthority({ validSeconds: t.authoritySeconds, now: () => now }, `longrun ${name}`);
  const found = observed && readAuthority(observed, now);
  if (found === undefined) {
    const reason = observed === undefined ? "a certificate authority was made" : "an unusable authority was replaced";
    // Certificates that the former authority signed stay valid until they are replaced.
    const former = splitPem(text(observed?.["ca.crt"])).filter((pem) => isValid(pem, now));
    return { authority: { signing: await create(), next: undefined, former }, reason };
  }
  const { signing, next, former } = found;
  if (next !== undefined) {
    if (now < signsFromMs(next, t)) return { authority: found };
    return {
      authority: { signing: next, next: undefined, former: [signing.certificate, ...former] },
      reason: "the new authority signs from now on",
    };
  }
  if (now < renewalMs(signing.certificate, t)) return { authority: found };
  return {
    authority: { signing, next: await create(), former },
    reason: "a new authority was made, which will replace the one that is about to expire",
  };
}

/** Undefined if it cannot sign: damaged, or expired. */
function readAuthority(data: SecretData, now: number): Authority | undefined {
  const [certificate, ...others] = splitPem(text(data["ca.crt"]));
  const signing = pair(certificate, text(data["ca.key"]));
  if (signing === undefined || !isValid(signing.certificate, now)) return undefined;
  const next = pair(splitPem(text(data["next.crt"]))[0], text(data["next.key"]));
  const former = others.filter((pem) => pem !== next?.certificate && isValid(pem, now));
  return { signing, next, former };
}

function dataOfAuthority(authority: Authority): SecretData {
  const { signing, next } = authority;
  return {
    "ca.crt": base64(bundleOf(authority)),
    "ca.key": base64(signing.key),
    ...(next && { "next.crt": base64(next.certificate), "next.key": base64(next.key) }),
  };
}

/** Returns the authorities that a peer's certificate may be signed by, as PEM. */
const bundleOf = ({ signing, next, former }: Authority): string =>
  [signing.certificate, ...(next ? [next.certificate] : []), ...former].map((pem) => `${pem}\n`).join("");

function readLeaf(data: SecretData | undefined): KeyAndCertificate | undefined {
  return data && pair(text(data["tls.crt"]), text(data["tls.key"]));
}

const dataOfLeaf = ({ authority, certificate, key }: TlsFiles): SecretData => ({
  "ca.crt": base64(authority),
  "tls.crt": base64(certificate),
  "tls.key": base64(key),
});

/** Returns the event message for a leaf that must be replaced, which names the reason; undefined if it may stay. */
function leafFault(
  leaf: KeyAndCertificate,
  { signing }: Authority,
  { role, name, hosts, dials, now, t }: LeafRequest,
): string | undefined {
  const certificate = new X509Certificate(leaf.certificate);
  if (!certificate.verify(new X509Certificate(signing.certificate).publicKey)) return "signed by the new authority";
  if (now >= renewalMs(leaf.certificate, t)) return "renewed";
  if (!certificate.subject.includes(`OU=${role}`)) return `replaced: it was not of role ${role}`;
  if (!certificate.subject.split("\n").includes(`CN=${name}`)) return `replaced: it was not of ${name}`;
  if (hosts.some((host) => certificate.checkHost(host) === undefined)) return "made for its new names";
  // Up to longrun 0.2 no learner dialled anybody.
  if (dials && !certificate.keyUsage?.includes(CLIENT_AUTHENTICATION)) return "made for calls to generators";
  return undefined;
}

/** Returns a key and its certificate; undefined if either is damaged or they do not belong together. */
function pair(certificate: string | undefined, key: string): KeyAndCertificate | undefined {
  try {
    if (!certificate || !new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return undefined;
    return { certificate, key };
  } catch {
    return undefined;
  }
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const splitPem = (bundle: string): string[] => bundle.match(PEM) ?? [];
const validToMs = (pem: string): number => new X509Certificate(pem).validToDate.getTime();

/** Returns the time at which every process trusts an authority that replaces another one. */
const signsFromMs = ({ certificate }: KeyAndCertificate, t: CertificateTimes): number =>
  validToMs(certificate) - t.authoritySeconds * 1000 + t.distributeSeconds * 1000;

function isValid(pem: string, now: number): boolean {
  try {
    return validToMs(pem) > now;
  } catch {
    return false;
  }
}

/** Returns the time at which a certificate is due for renewal. */
function renewalMs(pem: string, { renewShare }: CertificateTimes): number {
  const from = new X509Certificate(pem).validFromDate.getTime();
  return from + renewShare * (validToMs(pem) - from);
}

const text = (data: string | undefined): string => Buffer.from(data ?? "", "base64").toString("utf8");
const base64 = (data: string): string => Buffer.from(data).toString("base64");

function sameData(observed: SecretData | undefined, wanted: SecretData): boolean {
  if (observed === undefined) return false;
  const keys = Object.keys(wanted);
  return keys.length === Object.keys(observed).length && keys.every((key) => observed[key] === wanted[key]);
}
