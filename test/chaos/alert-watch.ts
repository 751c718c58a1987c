/** Runs a real Prometheus on the node, which evaluates the chart's alert rules, and observes the run once a second meanwhile. */
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { TestCluster } from "../cluster/node.ts";
import { ADDRESSES, NODE_NAME } from "../cluster/node-config.ts";
import { type Prometheus, startConfigured } from "../observability/prometheus.ts";
import { dividedRules, podScrape, SCRAPE_SECONDS, seconds } from "./alert-rules.ts";
import { type Facts, type Firing, judge, LAG_SECONDS, LEFT_OUT } from "./alerts.ts";
import { type ClusterApi, isOver, NAMESPACE, type Pod, SYSTEM } from "./cluster-api.ts";
import type { Trouble } from "./trouble.ts";

/** The kubelet renews its Lease every 10 s. Without that the pods' status on the API server is out of date. */
const KUBELET_SECONDS = 20;
/** How long the controller trusts a silent watch: `silenceSeconds` of controller/operator/kube/runtime/reflector.ts. */
const SILENCE_SECONDS = 90;

/** A trouble that struck. */
interface Noted {
  /** The trouble's name; after its end with its target. */
  name: string;
  endMs?: number;
}

export class Alerts {
  readonly #prometheus: Prometheus;
  readonly #folder: string;
  readonly #api: ClusterApi;
  readonly #waits: Record<string, number>;
  #run = "";
  #volume = "";
  #iterations: () => number = () => 0;
  #facts: Facts[] = [];
  #troubles: Noted[] = [];
  #timer: NodeJS.Timeout | undefined;
  #ends = new Map<string, number>();
  #endTimesMs: number[] = [];
  #newest = { count: 0, atMs: 0 };

  static async start(cluster: TestCluster, api: ClusterApi, log: (line: string) => void): Promise<Alerts> {
    await ensureBinaries(["prometheus"], { log });
    const folder = mkdtempSync(join(tmpdir(), "longrun-alert-rules-"));
    const [rules, kubeconfig] = [dividedRules(), join(cluster.folder, "kubeconfig-coredns")];
    const file = join(folder, "rules.yaml");
    writeFileSync(file, stringify(rules));
    const every = `${SCRAPE_SECONDS}s`;
    const config = {
      global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: every },
      rule_files: [file],
      scrape_configs: [
        podScrape(kubeconfig, SYSTEM, ["controller"]),
        podScrape(kubeconfig, NAMESPACE, ["learner", "actor"]),
      ],
    };
    const prometheus = await startConfigured(config, { pid: cluster.pid, host: ADDRESSES.node });
    const all = rules.groups.flatMap((group) => group.rules);
    const waits = Object.fromEntries(all.map((rule) => [rule.alert, seconds(rule.for)]));
    return new Alerts(prometheus, folder, api, waits);
  }

  private constructor(prometheus: Prometheus, folder: string, api: ClusterApi, waits: Record<string, number>) {
    this.#prometheus = prometheus;
    this.#folder = folder;
    this.#api = api;
    this.#waits = waits;
  }

  /**
   * Observes a run each second from now on. @param volume its path on this machine. @param iterations returns the number of finished
   * iterations, by the run's files. @returns the troubles, which are recorded from now on
   */
  begin(run: string, volume: string, iterations: () => number, troubles: readonly Trouble[]): Trouble[] {
    [this.#run, this.#volume, this.#iterations] = [run, volume, iterations];
    [this.#facts, this.#troubles, this.#ends, this.#endTimesMs] = [[], [], new Map(), []];
    this.#newest = { count: 0, atMs: 0 };
    this.#timer = setInterval(() => void this.#look(), 1000);
    return troubles.map((trouble) => ({
      ...trouble,
      strike: async (random) => {
        const noted: Noted = { name: trouble.name };
        this.#troubles.push(noted);
        const hit = await trouble.strike(random).finally(() => (noted.endMs = Date.now()));
        noted.name = `${trouble.name}: ${hit}`;
        return hit;
      },
    }));
  }

  /** Stops observing, and judges the run's alerts. */
  async judge(): Promise<{ findings: string[]; counts: Record<string, number> }> {
    clearInterval(this.#timer);
    const facts = this.#facts;
    const [from, to] = [facts[0]!.atMs / 1000, facts.at(-1)!.atMs / 1000];
    const all = await this.#prometheus.queryRange('ALERTS{alertstate="firing"}', from, to, 1);
    const firings = all
      .filter(({ metric }) => metric.run === undefined || metric.run === this.#run)
      .flatMap(({ metric, values }) => periods(metric.alertname!, values!));
    const up = await this.#prometheus.queryRange("up == 1", from, to, 1);
    const scraped = new Set(
      up.flatMap(({ metric, values }) => values!.map(([at]) => `${metric.pod} ${Math.floor(at)}`)),
    );
    const isScraped = (pod: string, atMs: number) => scraped.has(`${pod} ${Math.floor(atMs / 1000)}`);
    const { findings, due } = judge(facts, firings, this.#waits, isScraped);
    if (scraped.size === 0) findings.push("alerts: Prometheus reached no pod during the run");
    const judged = firings.filter(({ alert }) => !LEFT_OUT.includes(alert)).length;
    return { findings, counts: { "alerts judged": judged, "alerts due": due } };
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#prometheus.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #look(): Promise<void> {
    const atMs = Date.now();
    const facts: Facts = { atMs, troubles: this.#recentTroubles(atMs) };
    const lease = (namespace: string, name: string) =>
      this.#api.call<Lease>("GET", `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`);
    const asked = [lease("kube-node-lease", NODE_NAME), lease(SYSTEM, "longrun-controller")] as const;
    try {
      Object.assign(facts, this.#files(atMs));
      const [kubelet, leader, run, pods] = await Promise.all([
        ...asked,
        this.#api.run(this.#run),
        this.#api.pods(this.#run),
      ]);
      facts.leader = holds(leader, atMs, leader.spec.leaseDurationSeconds)
        ? leader.spec.holderIdentity!.replace(/_.*/, "")
        : "";
      if (holds(kubelet, atMs, KUBELET_SECONDS)) {
        const { suspend, actors } = run.spec as unknown as { suspend?: boolean; actors: { max: number } };
        const due = !suspend && ["Pending", "Running", "Evaluating"].includes(run.status?.phase ?? "");
        Object.assign(facts, this.#pods(pods, due, actors.max, atMs));
      }
    } catch {} // the API server does not answer: these facts stay unknown
    if (this.#facts.length === 0 || atMs > this.#facts.at(-1)!.atMs) this.#facts.push(facts);
  }

  #recentTroubles(atMs: number): string[] {
    const after = (name: string) => (name.startsWith("watches stall") ? SILENCE_SECONDS : LAG_SECONDS) * 1000;
    const isRecent = ({ name, endMs }: Noted) => endMs === undefined || atMs - endMs < after(name);
    return this.#troubles.filter(isRecent).map(({ name }) => name);
  }

  #files(atMs: number): Pick<Facts, "free" | "sinceIterationSeconds"> {
    const count = this.#iterations();
    if (count > this.#newest.count) {
      this.#newest = { count, atMs };
      this.#endTimesMs = this.#endTimesMs.filter((endMs) => atMs - endMs < LAG_SECONDS * 1000);
    }
    const { blocks, bavail } = statfsSync(this.#volume);
    const since = count > 0 && { sinceIterationSeconds: (atMs - this.#newest.atMs) / 1000 };
    return { free: bavail / blocks, ...since };
  }

  #pods(pods: Pod[], due: boolean, max: number, atMs: number): Pick<Facts, "learner" | "actors"> {
    const of = (component: string) =>
      pods.filter((pod) => pod.metadata.labels?.["app.kubernetes.io/component"] === component && !isOver(pod));
    const learners = of("learner");
    for (const { metadata, status } of learners)
      for (const { name, state, restartCount } of status?.containerStatuses ?? []) {
        const ends = name === "learner" ? restartCount + (state?.terminated ? 1 : 0) : 0;
        const before = this.#ends.get(metadata.uid!) ?? 0;
        if (ends > before) this.#ends.set(metadata.uid!, ends);
        for (let end = before; end < ends; end++) this.#endTimesMs.push(atMs);
      }
    const isReady = ({ status }: Pod) =>
      status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
    const learner = learners.find(isReady) ?? learners[0];
    const actors = of("actor").filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const running = actors.filter(({ status }) => status?.phase === "Running").length;
    const ends = this.#endTimesMs.length;
    return {
      learner: { name: learner?.metadata.name ?? "", ready: learner !== undefined && isReady(learner), due, ends },
      actors: { pending: actors.length - running, running, max },
    };
  }
}

interface Lease {
  spec: { holderIdentity?: string; renewTime?: string; leaseDurationSeconds: number };
}

/** Returns whether a Lease has a holder that renewed it in the last `seconds`. */
const holds = ({ spec }: Lease, atMs: number, seconds: number) =>
  spec.holderIdentity !== undefined &&
  spec.holderIdentity !== "" &&
  atMs - Date.parse(spec.renewTime ?? "") < seconds * 1000;

/** Returns the periods in which a series of one value a second existed. */
function periods(alert: string, values: readonly [number, string][]): Firing[] {
  const found: Firing[] = [];
  for (const [at] of values) {
    const last = found.at(-1);
    if (last && at * 1000 - last.toMs < 2000) last.toMs = at * 1000;
    else found.push({ alert, fromMs: at * 1000, toMs: at * 1000 });
  }
  return found;
}
