/**
 * The setup of the controller's benchmarks: a real API server, one controller process, and a stub for the learners, the controllers of
 * Deployments and Jobs, and the kubelets.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KubeConfig } from "@kubernetes/client-node";
import { COMPONENT, RUN, type Run } from "../../controller/operator/desired/names.ts";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import type { Deployment, Job, Pod } from "../../controller/operator/kube/resources.ts";
import * as resources from "../../controller/operator/kube/resources.ts";
import { Reflector } from "../../controller/operator/kube/runtime/reflector.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { type ControlPlane, startControlPlane } from "../cluster/control-plane.ts";
import { perSecond, type Round } from "./controller-round.ts";
import { complain, inParallel, NAMESPACE, podOf, runPod, setStatus, startLearner } from "./controller-stub.ts";
import { cpuSecondsOf, describeCores } from "./cores.ts";

const CRDS = ["trainingruns", "trainingruntimes"].map((kind) =>
  fileURLToPath(new URL(`../../crds/longrun.dev_${kind}.yaml`, import.meta.url)),
);
const CONTROLLER = fileURLToPath(new URL("./controller-process.ts", import.meta.url));
const DIRECT_CHANGES = 300;

export class BenchWorld {
  readonly #cluster: ControlPlane;
  readonly #client: ApiClient;
  #controller: ChildProcess;
  #metricsPort: number;
  readonly #stopping = new AbortController();
  readonly #jobs = new Map<string, Job>();
  readonly #deployments = new Map<string, Deployment>();
  readonly #runs = new Map<string, Run>();
  /** Called for each event of a run or of a pod. */
  onRun: (run: Run) => void = () => {};
  #onPod: (pod: Pod) => void = () => {};

  /** Called for each learner that must be started. */
  onLearner: (run: string) => void = () => {};

  /** @param real whether learners are dialled, at the ports of `learnerAt` */
  static async start(qps: number, workers: number, real = false): Promise<BenchWorld> {
    // Tests count with the audit log; here it would only cost time.
    const off = { "audit-policy-file": undefined, "audit-log-path": undefined, "audit-log-mode": undefined };
    const cluster = await startControlPlane({ crds: CRDS, users: { controller: ["system:masters"] }, apiServer: off });
    const { controller, metricsPort } = await startController(cluster, qps, workers, real);
    return new BenchWorld(cluster, controller, metricsPort);
  }

  /** Replaces the controller by another one. */
  async restart(qps: number, workers: number): Promise<void> {
    await this.#stopController();
    const { controller, metricsPort } = await startController(this.#cluster, qps, workers, true);
    this.#controller = controller;
    this.#metricsPort = metricsPort;
  }

  /** Tells the controller where learners listen. */
  learnersAt(ports: Record<string, number>): void {
    this.#controller.send({ ports });
  }

  get kubeconfig(): string {
    return this.#cluster.kubeconfig;
  }

  get client(): ApiClient {
    return this.#client;
  }

  private constructor(cluster: ControlPlane, controller: ChildProcess, metricsPort: number) {
    this.#cluster = cluster;
    this.#controller = controller;
    this.#metricsPort = metricsPort;
    const config = new KubeConfig();
    config.loadFromFile(cluster.kubeconfig);
    const client = new ApiClient(config, { qps: 1e6, burst: 1e6, timeoutSeconds: 120 });
    this.#client = client;
    const follow = <T extends KubeObject>(resource: typeof resources.JOB, onChange: (key: string, object: T) => void) =>
      void new Reflector<T>({
        ...{ client, resource, namespace: NAMESPACE },
        onChange: (key, object) => object && onChange(key, object),
      }).run(this.#stopping.signal);
    follow<Job>(resources.JOB, (key, job) => {
      if (!this.#jobs.has(key)) runPod(client, podOf(job, job.metadata.name)).catch(complain);
      this.#jobs.set(key, job);
    });
    follow<Deployment>(resources.DEPLOYMENT, (key, deployment) => {
      if (!this.#deployments.has(key)) {
        void startLearner(client, deployment).catch(complain);
        this.onLearner(deployment.metadata.labels![RUN]!);
      }
      this.#deployments.set(key, deployment);
    });
    follow<Pod>(resources.POD, (_, pod) => this.#onPod(pod));
    follow<Run>(resources.TRAINING_RUN, (key, run) => {
      this.#runs.set(key, run);
      this.onRun(run);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#client.close();
    await this.#stopController();
    await this.#cluster.stop();
  }

  async #stopController(): Promise<void> {
    const exited = once(this.#controller, "exit");
    this.#controller.disconnect();
    await exited;
  }

  /** Creates runs; resolves when each has its learner and its actor. */
  async create(names: string[]): Promise<void> {
    await inParallel(names, (name) => this.#createRun(name));
    await this.#until(() => this.#saying("AsDesired") === names.length, "every run has its learner and its actor");
  }

  async measure(count: number, rate: number, seconds: number): Promise<Round> {
    const names = Array.from({ length: count }, (_, i) => `run-${i}`);
    const say = (what: string) => process.stderr.write(`  ${count} runs: ${what}\n`);

    const cpu = this.cpuSeconds();
    const startedMs = performance.now();
    await inParallel(names, (name) => this.#createRun(name));
    await this.#until(() => this.#saying("AsDesired") === count, "every run has its learner and its actor");
    const creationSeconds = (performance.now() - startedMs) / 1000;
    const creationCores = this.coresSince(cpu, creationSeconds);
    const made = await this.counters();
    const actors = [...this.#jobs.values()].map((job) => podOf(job, job.metadata.name));
    say(
      `all have their learner and their actor after ${creationSeconds.toFixed(0)} s (${describeCores(creationCores)})`,
    );

    await this.#quiet();
    const before = await this.memory();
    // The same number of actors again that have ended and whose pods are kept.
    await inParallel([...this.#jobs.values()], (job) => {
      const name = `${job.metadata.name}-ended`;
      return runPod(this.#client, podOf({ ...job, metadata: { ...job.metadata, name, uid: name } }, name), "Succeeded");
    });
    await this.#quiet();
    const memory = await this.memory();

    const burst = await this.#burst(actors);
    const direct = await this.#direct(actors[0]!);
    say(`${perSecond(burst).toFixed(0)} changes/s, ${perSecond(direct).toFixed(0)} without a controller`);
    const steady = await this.#steady(actors, rate, seconds);
    return {
      runs: count,
      creations: made.created,
      creationSeconds,
      creationCores,
      requestsPerRun: made.requests / count,
      pods: 3 * count,
      bytesPerPod: (memory.heapUsed - before.heapUsed) / count,
      heapBytes: memory.heapUsed,
      residentBytes: memory.rss,
      burst,
      direct,
      steady,
    };
  }

  /** Uses runs that this controller ignores, each with a pod; the stub writes both statuses. */
  async #direct(like: Pod): Promise<Round["direct"]> {
    const status = [...this.#runs.values()].find((run) => reasonOf(run) !== undefined)!.status!;
    const names = Array.from({ length: DIRECT_CHANGES }, (_, i) => `direct-${i}`);
    const pods = names.map((name) => ({ ...like, metadata: { name, namespace: NAMESPACE } }));
    await inParallel(names, (name) => this.#createRun(name, { managedBy: "example.com/nobody" }));
    await inParallel(pods, (pod) => runPod(this.#client, pod));
    const startedMs = performance.now();
    await inParallel(pods, async (pod) => {
      await setStatus(this.#client, pod, "image");
      const metadata = { name: pod.metadata.name, namespace: NAMESPACE };
      await this.#client.apply(resources.TRAINING_RUN, { metadata, status } as KubeObject, { subresource: "status" });
    });
    return { changes: DIRECT_CHANGES, seconds: (performance.now() - startedMs) / 1000 };
  }

  async #burst(actors: Pod[]): Promise<Round["burst"]> {
    await this.#quiet();
    const before = { ...(await this.counters()), cpu: this.cpuSeconds() };
    const latency = this.#latency("Pending", "ImagePullFailed");
    const startedMs = performance.now();
    await inParallel(actors, (pod) => setStatus(this.#client, pod, "image"));
    await this.#until(() => latency.count() === actors.length, "every status says so");
    const seconds = (performance.now() - startedMs) / 1000;
    const after = await this.counters();
    return {
      changes: actors.length,
      seconds,
      milliseconds: latency.stop(),
      reconciles: after.reconciles - before.reconciles,
      requests: after.requests - before.requests,
      cores: this.coresSince(before.cpu, seconds),
    };
  }

  async #steady(actors: Pod[], perSecond: number, seconds: number): Promise<Round["steady"]> {
    await this.#quiet();
    const latency = this.#latency("Running", "AsDesired");
    const changes = Math.min(actors.length, perSecond * seconds);
    const cpu = this.cpuSeconds();
    const startedMs = performance.now();
    const sent: Promise<void>[] = [];
    for (let i = 0; i < changes; i++) {
      await sleep(Math.max(0, startedMs + (1000 * i) / perSecond - performance.now()));
      sent.push(setStatus(this.#client, actors[i]!, "running"));
    }
    await Promise.all(sent);
    await this.#until(() => latency.count() >= changes, "every change is a status");
    const cores = this.coresSince(cpu, (performance.now() - startedMs) / 1000);
    return { perSecond, milliseconds: latency.stop(), cores };
  }

  /** Measures for each run the time from its actor's pod being in `phase` to its status having `reason`; each changes once. */
  #latency(phase: string, reason: string) {
    // Two watches: the status may arrive before its pod.
    const podMs = new Map<string, number>();
    const statusMs = new Map<string, number>();
    const note = (times: Map<string, number>, name: string | undefined) => {
      if (name !== undefined && !times.has(name)) times.set(name, performance.now());
    };
    this.#onPod = ({ metadata, status }) => {
      if (metadata.labels?.[COMPONENT] === "actor" && status?.phase === phase) note(podMs, metadata.labels[RUN]);
    };
    this.onRun = (run) => {
      if (reasonOf(run) === reason) note(statusMs, run.metadata.name);
    };
    return {
      count: () => Math.min(podMs.size, statusMs.size),
      stop: () => {
        this.#onPod = this.onRun = () => {};
        return [...podMs].map(([name, seen]) => Math.max(0, statusMs.get(name)! - seen));
      },
    };
  }

  #createRun(name: string, more: object = {}): Promise<KubeObject> {
    const spec = {
      tasks: [{ name: "diamonds" }],
      model: { policy: "quickstart" },
      actors: { min: 1, max: 1 },
      ...more,
    };
    return this.#client.create(resources.TRAINING_RUN, {
      metadata: { name, namespace: NAMESPACE },
      spec,
    } as KubeObject);
  }

  /** Returns the number of runs whose actors have this reason. */
  #saying(reason: string): number {
    let count = 0;
    for (const run of this.#runs.values()) if (reasonOf(run) === reason) count++;
    return count;
  }

  async #until(holds: () => boolean, what: string): Promise<void> {
    for (let last = Date.now(), seen = ""; !holds(); ) {
      await sleep(20);
      const progress = `${this.#deployments.size} ${this.#jobs.size} ${this.#saying("AsDesired")} ${this.#saying("ImagePullFailed")}`;
      if (progress !== seen) [last, seen] = [Date.now(), progress];
      if (Date.now() - last > 60_000)
        throw new Error(`nothing has moved for 60 s while waiting for: ${what} (${progress})`);
    }
  }

  /** Waits until the controller has written nothing for 3 s. */
  async #quiet(): Promise<void> {
    for (let last = -1; ; ) {
      const { requests } = await this.counters();
      if (requests === last) return;
      last = requests;
      await sleep(3000);
    }
  }

  /** Reads the controller's own metrics. Watches do not count as requests. */
  async counters(): Promise<{ reconciles: number; requests: number; created: number }> {
    const text = await (await fetch(`http://127.0.0.1:${this.#metricsPort}/metrics`)).text();
    const sum = (name: string, of: (labels: string) => boolean = () => true) =>
      text
        .split("\n")
        .filter((line) => line.startsWith(`${name}{`) && of(line))
        .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    return {
      reconciles: sum("controller_runtime_reconcile_total"),
      requests: sum("rest_client_requests_total", (line) => !line.includes('method="WATCH"')),
      created: sum("rest_client_requests_total", (line) => line.includes('code="201"')),
    };
  }

  async memory(): Promise<{ heapUsed: number; rss: number }> {
    this.#controller.send("memory");
    const [memory] = await once(this.#controller, "message");
    return memory;
  }

  cpuSeconds(): Record<string, number> {
    const pids = { controller: this.#controller.pid!, ...this.#cluster.pids, stub: process.pid };
    return Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, cpuSecondsOf(pid)]));
  }

  coresSince(before: Record<string, number>, seconds: number): Record<string, number> {
    const now = this.cpuSeconds();
    return Object.fromEntries(Object.entries(now).map(([name, cpu]) => [name, (cpu - before[name]!) / seconds]));
  }
}

async function startController(cluster: ControlPlane, qps: number, workers: number, real: boolean) {
  const args = [await cluster.kubeconfigOf("controller"), String(qps), String(workers), real ? "real" : "none"];
  const controller = fork(CONTROLLER, args, { execArgv: ["--expose-gc"] });
  const [{ metricsPort }] = (await once(controller, "message")) as [{ metricsPort: number }];
  return { controller, metricsPort };
}

function reasonOf(run: Run): string | undefined {
  return run.status?.conditions?.find(({ type }) => type === "ActorsScaled")?.reason;
}
