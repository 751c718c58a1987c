/**
 * Small TrainingRuns on a real node, one after another: a cluster in namespaces of its own (`test/cluster/node.ts`), two controllers whose
 * requests go through a proxy that causes faults, and a volume in memory for each run. Needs Linux and root.
 */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startCluster, type TestCluster } from "../cluster/node.ts";
import { ADDRESSES } from "../cluster/node-config.ts";
import { CHART, type Helm, helmOf } from "../e2e/helm.ts";
import { buildImages, TARGETS } from "../e2e/images.ts";
import { Kubectl } from "../e2e/kubectl.ts";
import { localClass, localVolume, manifest } from "../e2e/manifests.ts";
import { ApiProxy } from "../faults/api-proxy.ts";
import { auditFolder, auditStore } from "./accounts.ts";
import { Alerts } from "./alert-watch.ts";
import { ClusterApi, isOver, NAMESPACE, RUNS, SYSTEM } from "./cluster-api.ts";
import { keptName, nodeTroubles } from "./node-troubles.ts";
import type { World } from "./trouble.ts";
import { Truth } from "./truth.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BATCH = 4;
const ITERATIONS = 8;
const VOLUME_MEBIBYTES = 256;
/** Longest time until the pods of a succeeded run, and the objects of a deleted run, are gone. */
const GONE_SECONDS = 180;

interface NodeRun {
  name: string;
  /** Path of the mount on the node, and on this machine. */
  mount: string;
  volume: string;
  truth: Truth;
}

export class NodeWorld implements World {
  readonly gapSeconds = 4;
  readonly atOnce = 3;
  readonly strikeSeconds = 360;
  readonly calmSeconds = 900;
  readonly #say: (line: string) => void;
  readonly #cluster: TestCluster;
  readonly #kubectl: Kubectl;
  readonly #api: ClusterApi;
  readonly #proxy: ApiProxy;
  readonly #kept = mkdtempSync(join(tmpdir(), "longrun-chaos-"));
  #helm!: Helm;
  #kinds = "";
  #alerts: Alerts | undefined;
  #run: NodeRun | undefined;
  #runs = 0;

  static async start(say: (line: string) => void): Promise<NodeWorld> {
    const archives = await buildImages(say);
    const cluster = await startCluster({ log: say });
    try {
      for (const archive of archives) await cluster.importImage(archive);
      for (const image of Object.values(TARGETS))
        for (const name of [keptName(image), image.replace(/:.*/, ":next")]) await cluster.tagImage(image, name);
      const proxy = await ApiProxy.start(cluster.controlPlane, ADDRESSES.machine);
      const world = new NodeWorld(say, cluster, proxy);
      await world.#install();
      world.#alerts = await Alerts.start(cluster, world.#api, say);
      return world;
    } catch (error) {
      say(cluster.logs(3));
      await cluster.stop();
      throw error;
    }
  }

  private constructor(say: (line: string) => void, cluster: TestCluster, proxy: ApiProxy) {
    this.#say = say;
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#kubectl = new Kubectl(cluster.kubectl, cluster.kubeconfig, NAMESPACE);
    this.#api = new ClusterApi(cluster.kubeconfig);
    proxy.afterWrite = (request) => this.#run?.truth.afterWrite(request);
  }

  /** Installs two controllers, which reach the API server through the proxy. */
  async #install(): Promise<void> {
    const system = new Kubectl(this.#cluster.kubectl, this.#cluster.kubeconfig, SYSTEM);
    this.#helm = await helmOf(this.#cluster, SYSTEM, this.#say);
    const images = ["--set", "images.registry=registry.example.com/ml"];
    await this.#helm("install", "longrun", CHART, ...images, "--create-namespace", "--wait", "--timeout", "3m");
    const { hostname, port } = new URL(this.#proxy.url);
    const address = [`KUBERNETES_SERVICE_HOST=${hostname}`, `KUBERNETES_SERVICE_PORT=${port}`];
    await system.run("set", "env", "deployment/longrun-controller", ...address);
    await system.run("rollout", "status", "deployment/longrun-controller", "--timeout=180s");
    await system.run("create", "namespace", NAMESPACE);
    await system.run("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted");
    await system.apply(localClass("local", true));
    const kinds = await system.run("api-resources", "--namespaced", "--verbs=list,delete", "--output=name");
    this.#kinds = kinds
      .trim()
      .split("\n")
      .filter((kind) => !kind.startsWith("events"))
      .join(",");
    this.#say(`two controllers run; their API server is ${this.#proxy.url}`);
  }

  async begin(seed: number) {
    const name = `chaos-${this.#runs++}`;
    const mount = join(this.#cluster.folder, "volumes", name);
    await this.#cluster.inNode("mkdir", ["-p", mount]);
    const size = `size=${VOLUME_MEBIBYTES}m,mode=0777`;
    await this.#cluster.inNode("mount", ["-t", "tmpfs", "-o", size, "tmpfs", mount]);
    const volume = `/proc/${this.#cluster.pid}/root${mount}`;
    await retry(60, () => this.#kubectl.apply(localVolume(name, "local", mount, "200Gi")));
    const truth = new Truth(this.#api, name, ITERATIONS, () => finished(volume));
    this.#run = { name, mount, volume, truth };
    await retry(60, () => this.#kubectl.apply(small(name, seed)));
    const place = { cluster: this.#cluster, api: this.#api, proxy: this.#proxy, helm: this.#helm };
    const troubles = nodeTroubles({ ...place, run: name, volume: mount, generates: generates(seed) }, this.#say);
    const noted = this.#alerts!.begin(name, volume, () => finished(volume), troubles);
    return { troubles: noted, ended: this.#watch(this.#run) };
  }

  /** Observes the run each second until it is over. @throws Error if it has failed */
  async #watch(run: NodeRun): Promise<void> {
    for (; ; await sleep(1000)) {
      this.#proxy.requests.length = 0; // the proxy keeps every request for short tests
      const { status } = await this.#api.run(run.name).catch(() => ({ status: undefined }));
      if (this.#run !== run) return;
      if (!status) continue;
      await run.truth.standing(status);
      if (status.phase === "Succeeded") return;
      const failed = status.conditions?.find((it) => it.type === "Failed" && it.status === "True");
      if (failed) throw new Error(`the run failed: ${failed.reason}: ${failed.message}`);
    }
  }

  async check() {
    const run = this.#run!;
    const { name, mount, truth } = run;
    const alerts = await this.#alerts!.judge();
    const findings = alerts.findings;
    const gone = await within(GONE_SECONDS, async () => (await this.#api.pods(name)).every(isOver));
    if (!gone) findings.push(`pods of a run that has succeeded are there after ${GONE_SECONDS} s`);
    findings.push(...truth.findings);
    const folder = join(this.#kept, name);
    cpSync(join(run.volume, "run"), folder, { recursive: true });
    findings.push(...(await this.#remove(name)));
    this.#run = undefined;
    await this.#cluster.inNode("umount", ["--lazy", mount]);
    const expected = { iterations: ITERATIONS, batch: BATCH };
    const audit = auditStore(join(folder, "store.sqlite"), expected);
    findings.push(...auditFolder(folder, expected), ...audit.findings, ...(await replayed(folder)));
    if (findings.length === 0) rmSync(folder, { recursive: true });
    else this.#say(`kept: ${folder}`);
    return {
      findings,
      counts: { ...audit.counts, "statuses compared": truth.writes, "replays compared": 1, ...alerts.counts },
    };
  }

  /** Deletes the run, and returns its remaining objects of any kind. */
  async #remove(name: string): Promise<string[]> {
    await retry(60, () => this.#api.call("DELETE", `${RUNS}/${name}`));
    let left: string[] = [];
    const isGone = await within(GONE_SECONDS, async () => {
      type Named = { kind: string; metadata: { name: string; labels?: Record<string, string> } };
      const all = await this.#kubectl.items<Named>(this.#kinds);
      const isOfRun = ({ metadata }: Named) =>
        metadata.name === name || metadata.name.startsWith(`${name}-`) || metadata.labels?.["longrun.dev/run"] === name;
      left = all.filter(isOfRun).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      return left.length === 0;
    });
    await retry(60, () => this.#kubectl.run("delete", "pv", name, "--ignore-not-found"));
    return isGone ? [] : [`left after the run was deleted: ${left}`];
  }

  async stop(keep: boolean): Promise<void> {
    if (keep) this.#say(await this.#lookAround());
    if (!keep) rmSync(this.#kept, { recursive: true, force: true });
    this.#run = undefined;
    await this.#alerts?.stop();
    await this.#proxy.stop();
    await this.#cluster.stop();
  }

  /** Returns the state of the cluster, for a person. */
  async #lookAround(): Promise<string> {
    const questions = [
      ["get", "trainingruns,pods,pvc", "--all-namespaces"],
      ["describe", "trainingruns"],
      ["get", "events", "--field-selector=type!=Normal"],
      ["logs", "--namespace", SYSTEM, "--selector", "app.kubernetes.io/component=controller", "--tail=30"],
      ["logs", "--selector", "longrun.dev/run", "--all-containers", "--prefix", "--tail=15"],
    ];
    const answers = questions.map((args) => this.#kubectl.run(...args).catch((error: Error) => error.message));
    return [...(await Promise.all(answers)), this.#cluster.logs(3)].join("\n");
  }
}

/** Returns whether the run of this seed has generators: every second run does. */
const generates = (seed: number) => seed % 2 === 1;

/** A run of some seconds an iteration, with critic and decay, so that all of the learner's state is used. */
function small(name: string, seed: number) {
  return manifest(name, ITERATIONS, (spec) => {
    const algorithm = { batchSize: BATCH, miniBatchSize: 2, microBatchSize: 2, baseline: "Critic" };
    Object.assign(spec, { seed, failurePolicy: { retries: 200 }, evaluation: { before: false, after: false } });
    spec.algorithm = { ...spec.algorithm, ...algorithm };
    spec.actors = { ...spec.actors, max: 2 };
    if (generates(seed)) {
      spec.generation = { replicas: { min: 1, max: 2 } };
      spec.model = { ...spec.model, generationBatchSize: BATCH / 2 };
    }
    spec.learner = { ...spec.learner, leaseGraceSeconds: 5, stopGraceSeconds: 10, storage: { retain: "Never" } };
  });
}

/** Trains again on the store's batches, undisturbed, on this machine: the weights are the same bit for bit. */
async function replayed(folder: string): Promise<string[]> {
  const out = `${folder}-replay`;
  const run = ["run", join(folder, "trainingrun.yaml"), "--replay", join(folder, "store.sqlite"), "--out", out];
  try {
    await promisify(execFile)(process.execPath, [join(ROOT, "controller/cli.ts"), ...run], { cwd: tmpdir() });
    const [was, is] = [folder, out].map((path) => newestDigest(join(path, "store.sqlite")));
    return was === is ? [] : [`the replay's weights differ: ${is}, the run's ${was}`];
  } catch (error) {
    return [`the replay failed: ${(error as Error).message.slice(-600)}`];
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Returns the digest of the newest checkpoint: every bit of policy, critic and both optimisers' state. */
const newestDigest = (store: string) =>
  query(store, "SELECT digest AS it FROM checkpoints WHERE superseded_by IS NULL ORDER BY iteration DESC LIMIT 1");

/** Returns how many iterations a run has finished, by its metrics, which are written before the learner reports the iteration. */
function finished(volume: string): number {
  // No query: SQLite opens no file by a path through another mount namespace.
  const file = join(volume, "run/metrics.jsonl");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
}

function query(store: string, sql: string): unknown {
  const database = new DatabaseSync(store, { readOnly: true, timeout: 5000 });
  try {
    return database.prepare(sql).get()?.it;
  } finally {
    database.close();
  }
}

/** @throws the last error after this many seconds */
async function retry<T>(seconds: number, what: () => Promise<T>): Promise<T> {
  for (const endMs = Date.now() + seconds * 1000; ; await sleep(1000)) {
    try {
      return await what();
    } catch (error) {
      if (Date.now() > endMs) throw error;
    }
  }
}

async function within(seconds: number, holds: () => Promise<boolean>): Promise<boolean> {
  for (const endMs = Date.now() + seconds * 1000; Date.now() < endMs; await sleep(1000))
    if (await holds().catch(() => false)) return true;
  return false;
}
