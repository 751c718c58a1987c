/**
 * A test's own control plane: a real etcd, a real kube-apiserver and, on request, controllers of a real kube-controller-manager; no node.
 * Ready in about 5 s. All its files are in one temporary folder. It ends, and the folder is removed, after `stop()`, or when the test's
 * process is killed.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { createAuthority, createCertificate } from "../../proto/certificates.ts";
import { API_SERVER, type Binary, CONTROL_PLANE, findBinary, missingBinaries } from "./binaries.ts";
import { freePorts, type Part, startGuard, startPart } from "./processes.ts";

/** Limit for the start of the API server, and for the installation of a CRD. */
const READY_TIMEOUT_SECONDS = 120;
/** Limit for one call. A call that is cut is made again until READY_TIMEOUT_SECONDS, because a busy machine answers late. */
const CALL_TIMEOUT_SECONDS = 5;
const CERTIFICATE_DAYS = 7;
/** A part that ends by itself, as an API server does that finds no etcd for 20 s, is started again so often. */
const RESTARTS = 10;

interface ControlPlaneOptions {
  /** Users in addition to `admin`, each with its groups; `system:masters` may do everything. */
  users?: Record<string, string[]>;
  /** Additional flags of the API server, without dashes; undefined removes a flag. */
  apiServer?: Record<string, string | undefined>;
  /**
   * Real controllers to run, by their names in kube-controller-manager, such as `job-controller`. Default: none; then nothing deletes
   * children of deleted owners, ends a deleted namespace, or makes pods of Jobs.
   */
  controllers?: string[];
  /** Files with one CustomResourceDefinition each, YAML or JSON, to install. They are served when the control plane is ready. */
  crds?: string[];
  /** Additional names and addresses in the API server's certificate. */
  hosts?: string[];
}

export interface ControlPlane {
  /** For the user `admin`, group `system:masters`. */
  kubeconfig: string;
  kubeconfigOf(user: string): Promise<string>;
  url: string;
  token: string;
  tokenOf(user: string): string;
  caFile: string;
  /** One JSON line for each answered request (audit.k8s.io/v1, level Metadata). */
  auditLog: string;
  audit(): AuditEntry[];
  /** Process ids, by program. */
  pids: Record<string, number>;
  /** Folder with all data. */
  folder: string;
  /** The private key that signs service account tokens, for a controller manager. */
  serviceAccountKeyFile: string;
  /** Says for each program how it ended, or that it runs, and how its log ends. */
  lastLines(): string[];
  /** Kills a part (SIGKILL), starts it again after this many seconds, and waits until the API server is ready. Data stays. */
  restart(name: "etcd" | "kube-apiserver", downSeconds?: number): Promise<void>;
  stop(): Promise<void>;
}

/** The fields of an audit event that tests read: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/ */
interface AuditEntry {
  /** When the request arrived, in Unix milliseconds. */
  atMs: number;
  user: string;
  verb: string;
  /** `group/plural`, or only the plural for the core group. */
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  code: number;
}

/**
 * Returns why this machine cannot start a control plane of these programs, in one line with the remedy (for `test(…, { skip })`), or
 * undefined.
 */
export function controlPlaneUnavailable(needed: readonly Binary[] = API_SERVER): string | undefined {
  return process.platform === "win32" ? "the control plane of the tests needs Linux or macOS" : missingBinaries(needed);
}

/** @throws Error with the last lines of the part that failed to start */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const controllers = options.controllers ?? [];
  const unavailable = controlPlaneUnavailable(controllers.length > 0 ? CONTROL_PLANE : API_SERVER);
  if (unavailable) throw new Error(unavailable);
  const folder = await mkdtemp(join(tmpdir(), "longrun-control-plane-"));
  const inFolder = (name: string) => join(folder, name);
  const guard = startGuard(folder);
  /** In the order of their starts. */
  const parts = new Map<Binary, Part & { args: string[] }>();
  const pids: Record<string, number> = {};
  let stopped = false;
  const stop = async () => {
    stopped = true;
    for (const part of [...parts.values()].toReversed()) await part.stop();
    await rm(folder, { recursive: true, force: true });
    guard.stop();
  };
  try {
    const tokens = await writeCredentials(folder, options);
    const [etcdPort, peerPort, apiPort] = await freePorts(3);
    const start = (name: Binary, args: string[], onEnd?: () => void) => {
      const part = startPart(findBinary(name)!, args, inFolder(`${name}.log`), onEnd);
      guard.watch(part.pid);
      parts.set(name, { ...part, args });
      pids[name] = part.pid;
      return part;
    };
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    const etcd = start("etcd", [
      ...["--data-dir", inFolder("etcd"), "--log-level", "warn", "--unsafe-no-fsync"],
      ...["--listen-client-urls", etcdUrl, "--advertise-client-urls", etcdUrl],
      ...[
        "--listen-peer-urls",
        peerUrl,
        "--initial-advertise-peer-urls",
        peerUrl,
        "--initial-cluster",
        `default=${peerUrl}`,
      ],
    ]);
    const flags: Record<string, string | undefined> = {
      "etcd-servers": etcdUrl,
      "bind-address": "127.0.0.1",
      "secure-port": String(apiPort),
      "cert-dir": inFolder("certificates"),
      "tls-cert-file": inFolder("apiserver.crt"),
      "tls-private-key-file": inFolder("apiserver.key"),
      "token-auth-file": inFolder("tokens.csv"),
      "authorization-mode": "RBAC",
      "service-account-key-file": inFolder("service-account.key"),
      "service-account-signing-key-file": inFolder("service-account.key"),
      "service-account-issuer": "https://kubernetes.default.svc",
      "service-cluster-ip-range": "10.96.0.0/16",
      // Without a controller manager no namespace gets its default service account, so no pod could be created.
      "disable-admission-plugins": "ServiceAccount",
      // No pod would dial the service `kubernetes`.
      "endpoint-reconciler-type": "none",
      "audit-policy-file": inFolder("audit-policy.json"),
      "audit-log-path": inFolder("audit.log"),
      // A request is logged before its answer is sent, so that tests can count.
      "audit-log-mode": "blocking-strict",
      ...options.apiServer,
    };
    const apiServer = start(
      "kube-apiserver",
      Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    );
    const url = `https://127.0.0.1:${apiPort}`;
    const ca = readFileSync(inFolder("ca.crt"), "utf8");
    const call: Call = (method, path, body) => callApi(`${url}${path}`, ca, tokens.admin!, method, body);
    await ready(call, [etcd, apiServer]);
    const restart = async (name: "etcd" | "kube-apiserver", downSeconds = 0) => {
      const { args, stop: kill } = parts.get(name)!;
      await kill();
      await sleep(downSeconds * 1000);
      for (let tries = 1; !stopped; tries++) {
        const part = start(name, args);
        try {
          return await ready(call, [part]);
        } catch (error) {
          if (part.ended() === undefined || tries > RESTARTS) throw error;
        }
      }
    };
    const kubeconfigOf = async (user: string) => {
      const path = inFolder(`kubeconfig-${user}`);
      await writeFile(path, kubeconfig(url, inFolder("ca.crt"), user, tokenOf(user)), { mode: 0o600 });
      return path;
    };
    const tokenOf = (user: string) => {
      const token = tokens[user];
      if (token === undefined) throw new Error(`no user ${user}: name it in the option users`);
      return token;
    };
    // Before the controllers, because the garbage collector looks for new kinds only every 30 s.
    for (const file of options.crds ?? []) await installCrd(file, call);
    if (controllers.length > 0) {
      const args = [
        ...["--kubeconfig", await kubeconfigOf("admin"), "--controllers", controllers.join(",")],
        ...["--service-account-private-key-file", inFolder("service-account.key")],
        ...["--root-ca-file", inFolder("ca.crt")],
        ...["--kube-api-qps", "500", "--kube-api-burst", "1000", "--leader-elect=false", "--secure-port=0"],
      ];
      // It ends where the API server is late at its start; a kubelet starts it again, too.
      let restarts = 0;
      const startManager = () => {
        start("kube-controller-manager", args, () => !stopped && restarts++ < RESTARTS && startManager());
      };
      startManager();
    }
    return {
      kubeconfig: await kubeconfigOf("admin"),
      kubeconfigOf,
      url,
      token: tokenOf("admin"),
      tokenOf,
      caFile: inFolder("ca.crt"),
      auditLog: inFolder("audit.log"),
      audit: () => readAudit(inFolder("audit.log")),
      pids,
      folder,
      serviceAccountKeyFile: inFolder("service-account.key"),
      lastLines: () =>
        [...parts].map(([name, part]) => part.ended() ?? `${name} runs; its log ends with: ${part.lastLines()}`),
      restart,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns a kubeconfig with one user; JSON is YAML. */
export function kubeconfig(url: string, caFile: string, user: string, token: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority": caFile } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user } }],
    "current-context": "test",
  });
}

/** Writes credentials. Returns tokens by user. */
async function writeCredentials(folder: string, options: ControlPlaneOptions): Promise<Record<string, string>> {
  const validSeconds = CERTIFICATE_DAYS * 24 * 3600;
  const authority = await createAuthority({ validSeconds }, "longrun-test-cluster");
  const serving = await createCertificate(authority, {
    role: "learner", // the servers' role
    name: "kube-apiserver",
    hosts: ["127.0.0.1", "localhost", "kubernetes.default.svc", ...(options.hosts ?? [])],
    validSeconds,
  });
  const { privateKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "sec1", format: "pem" },
  });
  const users = { admin: ["system:masters"], ...options.users };
  const tokens = Object.fromEntries(Object.keys(users).map((user) => [user, randomBytes(16).toString("hex")]));
  const rows = Object.entries(users).map(([user, groups]) => `${tokens[user]},${user},${user},"${groups.join(",")}"\n`);
  const files = {
    "ca.crt": authority.certificate,
    "ca.key": authority.key,
    "apiserver.crt": serving.certificate,
    "apiserver.key": serving.key,
    "service-account.key": privateKey,
    "tokens.csv": rows.join(""),
    "audit-policy.json": JSON.stringify({
      apiVersion: "audit.k8s.io/v1",
      kind: "Policy",
      omitStages: ["RequestReceived", "ResponseStarted"],
      rules: [{ level: "Metadata" }],
    }),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
  return tokens;
}

type Call = (method: "GET" | "POST", path: string, yaml?: string) => Promise<{ code: number; text: string }>;

async function ready(call: Call, parts: Part[]): Promise<void> {
  await until("kube-apiserver was not ready", 100, async () => {
    for (const part of parts) if (part.ended()) throw new Ended(part.ended());
    const { code, text } = await call("GET", "/readyz?verbose");
    if (code !== 200) throw new Error(text);
    // The default namespace is created after the API server reports that it is ready.
    const { code: found } = await call("GET", "/api/v1/namespaces/default");
    if (found !== 200) throw new Error(`the namespace default answers ${found}`);
  });
}

/** A part that ended will not become ready. */
class Ended extends Error {}

async function installCrd(file: string, call: Call): Promise<void> {
  const yaml = readFileSync(file, "utf8");
  const { metadata, spec } = await until(`the API server did not take ${file}`, 50, async () => {
    const { code, text } = await call("POST", CRDS, yaml);
    if (code === 201) return JSON.parse(text);
    if (code !== 409) throw new Ended(`the API server refuses ${file}: ${text}`);
    // An earlier call whose answer was lost has created it.
    const { name } = parse(yaml).metadata;
    return JSON.parse((await call("GET", `${CRDS}/${name}`)).text);
  });
  const path = `/apis/${spec.group}/${spec.versions[0].name}/${spec.names.plural}`;
  await until(`${metadata.name} was not served`, 50, async () => {
    const { code } = await call("GET", path);
    if (code !== 200) throw new Error(`${path} answers ${code}`);
  });
}
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Tries until `attempt` returns, with pauses. @throws Error after READY_TIMEOUT_SECONDS with the last reason, and Ended at once */
async function until<Result>(what: string, pauseMilliseconds: number, attempt: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + READY_TIMEOUT_SECONDS * 1000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Ended) throw error;
      if (performance.now() > deadline)
        throw new Error(`${what} within ${READY_TIMEOUT_SECONDS} s: ${(error as Error).message}`, { cause: error });
    }
    await sleep(pauseMilliseconds);
  }
}

function callApi(url: string, ca: string, token: string, method: string, yaml?: string) {
  return new Promise<{ code: number; text: string }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/yaml" };
    const sent = request(url, { method, ca, headers, agent: false }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve({ code: response.statusCode!, text }));
      response.on("error", reject);
    });
    const timeout = () => sent.destroy(new Error(`no answer within ${CALL_TIMEOUT_SECONDS} s`));
    sent.setTimeout(CALL_TIMEOUT_SECONDS * 1000, timeout);
    sent.on("error", reject).end(yaml);
  });
}

function readAudit(path: string): AuditEntry[] {
  // The text after the last line feed is an incomplete line, or empty.
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => {
    const { requestReceivedTimestamp, user, verb, objectRef: of = {}, responseStatus } = JSON.parse(line);
    return {
      atMs: Date.parse(requestReceivedTimestamp),
      user: user.username,
      verb,
      resource: of.apiGroup ? `${of.apiGroup}/${of.resource}` : (of.resource ?? ""),
      subresource: of.subresource,
      namespace: of.namespace,
      name: of.name,
      code: responseStatus?.code ?? 0,
    };
  });
}
