/** The troubles of a run on a real node. Each undoes its effects. A trouble that meets the effects of another one counts as missed. */
import { join } from "node:path";
import type { NodePart } from "../cluster/node.ts";
import { NODE_NAME } from "../cluster/node-config.ts";
import { CHART } from "../e2e/helm.ts";
import { TARGETS } from "../e2e/images.ts";
import { findInCgroup } from "../e2e/machine.ts";
import type { Fault } from "../faults/api-proxy.ts";
import type { ApiRequest } from "../faults/api-request.ts";
import {
  CHILDREN,
  type ChildKind,
  type Deployment,
  isOver,
  type Pod,
  pathOf,
  podPath,
  type Service,
} from "./cluster-api.ts";
import { CUTS, cut } from "./network-cuts.ts";
import { between, mend, type Place, type Strike } from "./node-place.ts";
import type { Random, Trouble } from "./trouble.ts";

const NODE = `/api/v1/nodes/${NODE_NAME}`;
/** Images by component. Generators have the learner's. */
const IMAGES = { learner: "learner", actor: "actor", controller: "controller", generator: "learner" } as const;
type Component = keyof typeof IMAGES;
const COMPONENTS = Object.keys(IMAGES) as Component[];
const PROCESSES = {
  ...{ learner: "learner/main.ts", actor: "actor/main.ts", sandbox: "zygote.py", controller: "cli.ts" },
  generator: "serve-command.ts",
};
type Process = keyof typeof PROCESSES;

/** @param say receives the reason why a trouble was missed */
export function nodeTroubles(place: Place, say: (line: string) => void): Trouble[] {
  const busy = new Set<string>();
  /** @param what the target: two troubles never hit the same target at once */
  const trouble = (name: string, weight: number, what: string, strike: Strike): Trouble => ({
    name,
    weight,
    async strike(random) {
      if (busy.has(what)) return undefined;
      busy.add(what);
      try {
        return await strike(place, random);
      } catch (error) {
        say(`${name} hit nothing: ${(error as Error).message.split("\n")[0]!.slice(0, 160)}`);
        return undefined;
      } finally {
        busy.delete(what);
      }
    },
  });
  const processes = (Object.keys(PROCESSES) as Process[]).filter((it) => it !== "generator" || place.generates);
  const signals = processes.flatMap((process) => [
    trouble(`SIGKILL ${process}`, 2, process, kill(process, "SIGKILL")),
    trouble(`SIGTERM ${process}`, 2, process, kill(process, "SIGTERM")),
    trouble(`SIGSTOP ${process}`, 2, process, pause(process)),
  ]);
  const restarts = (["kube-controller-manager", "kube-scheduler", "containerd"] as const).map((part) =>
    trouble(`${part} restarts`, 1, part, restartPart(part, 0, 20)),
  );
  const answers = Object.entries(ANSWERS).map(([name, fault]) =>
    trouble(`API server ${name}`, 2, "proxy", answerWith(fault)),
  );
  const cuts = Object.entries(CUTS).map(([name, ends]) => trouble(`network cut ${name}`, 2, name, cut(ends)));
  return [
    ...signals,
    ...restarts,
    ...answers,
    ...cuts,
    trouble("pod deleted", 4, "pods", deletePod),
    trouble("child deleted", 8, "children", deleteChild),
    trouble("child edited", 8, "children", editChild),
    trouble("eviction", 4, "pods", evictOne),
    trouble("node drained", 2, "node", drain),
    trouble("node lost", 2, "kubelet", restartPart("kubelet", 5, 75)),
    trouble("API server restarts", 2, "kube-apiserver", restartControlPlane("kube-apiserver")),
    trouble("etcd restarts", 2, "etcd", restartControlPlane("etcd")),
    trouble("old reads", 2, "proxy", oldReads),
    trouble("watches end with 410", 2, "watches", async ({ proxy }) => {
      proxy.expireWatches();
      return "all watches";
    }),
    trouble("watches break", 1, "watches", async ({ proxy }) => {
      const broken = proxy.resetWatches();
      return broken > 0 ? `${broken} watches` : undefined;
    }),
    trouble("watches stall", 1, "watches", stallWatches),
    trouble("suspend and resume", 2, "suspend", suspend),
    trouble("full volume", 2, "volume", fill),
    trouble("chart upgraded", 2, "chart", upgrade),
    trouble("image missing", 2, "image", missingImage),
    trouble("DNS fails", 2, "coredns", restartPart("coredns", 2, 30)),
  ];
}

/** Returns a pod that has not ended, if there is one. */
async function somePod({ api, run }: Place, random: Random, component: string): Promise<Pod | undefined> {
  const pods = (await api.pods(run, component)).filter((pod) => !isOver(pod));
  return pods.length > 0 ? random.pick(pods) : undefined;
}

async function findProcess(place: Place, random: Random, process: Process): Promise<number | undefined> {
  const pod = await somePod(place, random, process === "sandbox" ? "actor" : process);
  const pids = pod ? findInCgroup(pod.metadata.uid!, PROCESSES[process]) : [];
  return pids.length > 0 ? random.pick(pids) : undefined;
}

function kill(what: Process, signal: NodeJS.Signals): Strike {
  return async (place, random) => {
    const pid = await findProcess(place, random, what);
    if (pid === undefined) return undefined;
    process.kill(pid, signal);
    return `${what} ${pid}`;
  };
}

/** Stops a process for a while, for less or more time than probes, leases and heartbeats take. */
function pause(what: Process): Strike {
  return async (place, random) => {
    const pid = await findProcess(place, random, what);
    if (pid === undefined) return undefined;
    process.kill(pid, "SIGSTOP");
    const stopped = await between(random, 0.5, 40);
    try {
      process.kill(pid, "SIGCONT");
      return `${what} ${pid} for ${stopped}`;
    } catch {
      return `${what} ${pid}, which was killed meanwhile`;
    }
  };
}

function restartPart(part: NodePart, least: number, most: number): Strike {
  return async ({ cluster }, random) => {
    const seconds = random.between(least, most);
    await cluster.restart(part, seconds);
    return `${part} away for ${seconds.toFixed(1)} s`;
  };
}

function restartControlPlane(part: "etcd" | "kube-apiserver"): Strike {
  return async ({ cluster }, random) => {
    const seconds = random.between(0, 25);
    await cluster.controlPlane.restart(part, seconds);
    return `${part} away for ${seconds.toFixed(1)} s`;
  };
}

async function deletePod(place: Place, random: Random): Promise<string | undefined> {
  const component = random.pick(COMPONENTS);
  const force = random.next() < 0.5;
  const pod = await somePod(place, random, component);
  if (!pod) return undefined;
  await place.api.call("DELETE", `${podPath(pod)}${force ? "?gracePeriodSeconds=0" : ""}`);
  return `${pod.metadata.name}${force ? " by force" : ""}`;
}

async function deleteChild({ api, run }: Place, random: Random): Promise<string | undefined> {
  const kind = random.pick(Object.keys(CHILDREN) as ChildKind[]);
  const children = await api.children(run, kind);
  if (children.length === 0) return undefined;
  const { name } = random.pick(children).metadata;
  await api.call("DELETE", `${pathOf(kind)}/${name}`, { propagationPolicy: "Background" });
  return `${kind} ${name}`;
}

/** Mistakes of a person with a child: {mistake: [kind, change]}. */
const EDITS: Record<string, [kind: ChildKind, change: (child: never) => object]> = {
  "scaled to 0": ["deployments", () => ({ spec: { replicas: 0 } })],
  "other image": [
    "deployments",
    (child: Deployment) => {
      const [container] = child.spec!.template.spec!.containers;
      return { spec: { template: { spec: { containers: [{ ...container, image: "registry.example.com/none:1" }] } } } };
    },
  ],
  "no label of its manager": [
    "deployments",
    () => ({ metadata: { labels: { "app.kubernetes.io/managed-by": null } } }),
  ],
  "no owner": ["services", () => ({ metadata: { ownerReferences: null } })],
  "other selector": ["services", () => ({ spec: { selector: { edited: "true" } } })],
  "other port": [
    "services",
    (child: Service) => ({ spec: { ports: child.spec!.ports!.map((port) => ({ ...port, targetPort: 1 })) } }),
  ],
  "other data": ["configmaps", () => ({ data: { edited: "true" } })],
  "empty manifest": ["configmaps", () => ({ data: { "trainingrun.yaml": "" } })],
  "no certificate": ["secrets", () => ({ data: { "tls.crt": "" } })],
  "other policy": ["networkpolicies", () => ({ spec: { podSelector: { matchLabels: { edited: "true" } } } })],
  "no evictions": ["poddisruptionbudgets", () => ({ spec: { minAvailable: 1 } })],
};

async function editChild({ api, run }: Place, random: Random): Promise<string | undefined> {
  const [what, [kind, change]] = random.pick(Object.entries(EDITS));
  const children = await api.children(run, kind);
  if (children.length === 0) return undefined;
  const child = random.pick(children);
  await api.call("PATCH", `${pathOf(kind)}/${child.metadata.name}`, change(child as never));
  return `${kind} ${child.metadata.name}: ${what}`;
}

async function evict({ api }: Place, pod: Pod): Promise<void> {
  const { name, namespace } = pod.metadata;
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  await api.call("POST", `${podPath(pod)}/eviction`, eviction);
}

async function evictOne(place: Place, random: Random): Promise<string | undefined> {
  const pod = await somePod(place, random, random.pick(COMPONENTS));
  if (!pod) return undefined;
  await evict(place, pod);
  return pod.metadata.name;
}

/** Cordons the node and evicts the run's pods and a controller, as a drain does; uncordons it later. */
async function drain(place: Place, random: Random): Promise<string | undefined> {
  const { api, run } = place;
  const cordon = (unschedulable: boolean) => api.call("PATCH", NODE, { spec: { unschedulable } });
  try {
    await cordon(true); // it may be done although the answer is lost
    const controller = await somePod(place, random, "controller");
    const pods = (await api.pods(run)).filter((pod) => !isOver(pod));
    const all = [...pods, ...(controller ? [controller] : [])];
    const refused = await Promise.all(
      all.map((pod) =>
        evict(place, pod).then(
          () => 0,
          () => 1,
        ),
      ),
    );
    const unschedulable = await between(random, 3, 30);
    return `${all.length - refused.reduce((sum: number, one) => sum + one, 0)} pods evicted, no node for ${unschedulable}`;
  } finally {
    await mend(() => cordon(false));
  }
}

/** Faults of the API server's answers to the controllers, each for a share of the requests. */
const ANSWERS: Record<string, Fault> = {
  "answers 429": { kind: "answer", code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
  "answers 500": { kind: "answer", code: 500, reason: "InternalError" },
  "answers late": { kind: "delay", seconds: 3 },
  "answers 504 and has done it": { kind: "lost", how: "504" },
  "breaks connections": { kind: "lost", how: "reset" },
};

function answerWith(fault: Fault): Strike {
  return async ({ proxy }, random) => {
    const [share, own] = [random.between(0.2, 1), random.fork()];
    const met = { count: 0 };
    const when = (_: ApiRequest) => own.next() < share && ++met.count > 0;
    proxy.inject(when, fault, Number.POSITIVE_INFINITY);
    const seconds = await between(random, 2, 25);
    proxy.clearFaults();
    return met.count > 0 ? `${met.count} requests in ${seconds}` : undefined;
  };
}

async function oldReads({ proxy }: Place, random: Random): Promise<string> {
  try {
    await proxy.freezeReads();
    return `for ${await between(random, 2, 30)}`;
  } finally {
    proxy.thawReads();
  }
}

async function stallWatches({ proxy }: Place, random: Random): Promise<string | undefined> {
  const stalled = proxy.stallWatches(() => random.next() < 0.5);
  return stalled > 0 ? `${stalled} watches` : undefined;
}

async function suspend({ api, run }: Place, random: Random): Promise<string | undefined> {
  try {
    await api.patchRun(run, { suspend: true }); // it may be done although the answer is lost
    return `for ${await between(random, 0.5, 60)}`;
  } finally {
    await mend(() => api.patchRun(run, { suspend: false }));
  }
}

async function fill({ cluster, volume }: Place, random: Random): Promise<string> {
  const filler = join(volume, "filler");
  await cluster.inNode("sh", ["-c", `cat /dev/zero > ${filler} 2>/dev/null || true`]);
  try {
    return `for ${await between(random, 3, 40)}`;
  } finally {
    await cluster.inNode("rm", ["-f", filler]);
  }
}

/** Upgrades the chart: new controllers, often with other images for learners and actors, and the CRD again. */
async function upgrade({ helm }: Place, random: Random): Promise<string> {
  const values = `images.tag=${random.pick(["0.2.0", "next"])},controller.logLevel=${random.pick(["info", "debug"])}`;
  const run = () => helm("upgrade", "longrun", CHART, "--reset-then-reuse-values", "--set", values, "--hide-notes");
  let failed = 0;
  // If the API server goes away in the middle, the release is rolled back, as a person would do it, and upgraded again.
  await mend(() =>
    run().catch(async () => {
      failed++;
      await helm("rollback", "longrun");
      await run();
    }),
  );
  return failed > 0 ? `${values}, rolled back and tried again` : values;
}

export const keptName = (image: string) => image.replace(/^.*\/(.*):.*$/, "longrun.test/kept/$1:1");

/** The node loses an image, and no registry has it; a pod that needs it is deleted meanwhile. */
async function missingImage(place: Place, random: Random): Promise<string | undefined> {
  const { cluster, api } = place;
  const component = random.pick(COMPONENTS);
  const image = TARGETS[IMAGES[component]];
  const names = [image, image.replace(/:.*/, ":next")];
  const ctr = (...args: string[]) =>
    cluster.inNode("ctr", [
      "--address",
      `${cluster.folder}/containerd.sock`,
      "--namespace",
      "k8s.io",
      "images",
      ...args,
    ]);
  try {
    await ctr("rm", ...names);
    const pod = await somePod(place, random, component);
    if (pod) await api.call("DELETE", podPath(pod));
    return `${component}'s, for ${await between(random, 5, 40)}`;
  } finally {
    for (const name of names) await mend(() => ctr("tag", "--force", keptName(image), name));
  }
}
