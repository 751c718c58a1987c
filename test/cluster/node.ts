/**
 * A whole cluster on this machine for tests: the control plane of `control-plane.ts`, a controller manager, a scheduler, and one node with
 * containerd, kubelet, kube-proxy (iptables) and CoreDNS. Needs Linux and root.
 *
 *     node test/cluster/node.ts         starts one, prints its kubeconfig, ends with ctrl-C
 *
 * The node has its own network, mount and PID namespaces, like the nodes of kind in their containers. Its links, routes, iptables rules,
 * mounts and processes end with the namespaces' first process, which ends when the test ends, in any way. The shell that started that
 * process then removes cgroups and the folder.
 *
 * Tested with cgroup v1; support for v2 is untested.
 *
 * Not supported: enforcement of NetworkPolicies (the plugin `ptp` has none), an image registry (`importImage` takes archives; pods need
 * `imagePullPolicy: Never` or `IfNotPresent`), and access to the network from pods.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createAuthority, createCertificate } from "../../proto/certificates.ts";
import { findTool, missingTools, type Tool } from "../tools.ts";
import { type Binary, ensureBinaries } from "./binaries.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import * as config from "./node-config.ts";
import { ADDRESSES, NODE_NAME, nodeFolders } from "./node-config.ts";

const run = promisify(execFile);

const READY_TIMEOUT_SECONDS = 120;
/** Two cores that other work keeps busy take minutes for the pods' processes and for gigabytes of image layers. */
const STOP_TIMEOUT_SECONDS = 300;
/** PATH with root's folders, which a shell of `su` lacks. */
export const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
/** What a node needs. */
export const PROGRAMS: readonly Tool[] = [
  ...(["containerd", "ctr", "runc", "iptables", "conntrack", "ip", "nsenter", "unshare", "mount", "ptp"] as const),
];

export type NodePart =
  | "containerd"
  | "kube-controller-manager"
  | "kube-scheduler"
  | "kubelet"
  | "kube-proxy"
  | "coredns";

export interface TestCluster {
  controlPlane: ControlPlane;
  /** Kubeconfig of cluster-admin, for this machine. */
  kubeconfig: string;
  folder: string;
  /** Name of the cgroup, in every hierarchy, above all pods. */
  cgroup: string;
  /** Path of the program that was found. */
  kubectl: string;
  /** Process id of the node's first process, on this machine: `/proc/PID/root` is the node's file system. */
  pid: number;
  /** Kills a part of the node (SIGKILL) and starts it again after this many seconds. */
  restart(part: NodePart, downSeconds: number): Promise<void>;
  /** Returns the standard output of a command in the node's namespaces. */
  inNode(command: string, args: string[]): Promise<string>;
  /** Imports a docker or OCI archive into the node's containerd, with the names in it. */
  importImage(archive: string): Promise<void>;
  /** Gives an image of the node an additional name. */
  tagImage(name: string, other: string): Promise<void>;
  /** Last lines of every part's log. */
  logs(lines?: number): string;
  /** Ends and removes everything. */
  stop(): Promise<void>;
}

/** Returns why this machine cannot have a node, in one line with the remedy, or undefined. */
export function nodeUnavailable(): string | undefined {
  if (process.platform !== "linux") return "a node for tests needs Linux: containers are made by its kernel";
  if (process.getuid?.() !== 0) return "a node for tests needs root (namespaces, mounts, cgroups): run it with sudo";
  return missingTools(PROGRAMS, PATH);
}

/**
 * @param options.images archives that the node imports while its other parts start
 * @throws Error with the last lines of the part that failed to start; nothing is left then
 */
export async function startCluster(
  options: { log?: (line: string) => void; images?: readonly string[] } = {},
): Promise<TestCluster> {
  const unavailable = nodeUnavailable();
  if (unavailable) throw new Error(unavailable);
  const { log = () => {}, images: archives = [] } = options;
  const names = ["kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "coredns", "kubectl"] as const;
  const binaries = await ensureBinaries<Binary>([...names, "kube-apiserver", "etcd"], { log });

  // Not below /tmp, which may be in memory: the node's root file systems are too large for it.
  const folder = await mkdtemp("/var/tmp/longrun-node-");
  const at = nodeFolders(folder);
  for (const path of Object.values(at)) if (!path.endsWith(".sock")) mkdirSync(path, { recursive: true });
  const cgroup = `longrun-test-${process.pid}`;
  const namespaces = await startNamespaces(folder, cgroup);
  let controlPlane: ControlPlane | undefined;
  const stop = async () => {
    await controlPlane?.stop();
    await namespaces.stop();
  };
  try {
    await linkMachineAndNode(namespaces.pid);
    const parts = new Map<NodePart, Part>();
    const starter = partStarter(namespaces.pid, folder);
    const part = (name: NodePart, file: string, args: string[]) => {
      const started = starter(name, file, args);
      parts.set(name, started);
      return started;
    };

    writeFileSync(`${folder}/containerd.toml`, config.containerdConfig(folder, dirname(findTool("ptp")!)));
    writeFileSync(`${at.cni}/10-longrun-test.conflist`, config.cniConfig(folder));
    writeFileSync(`${folder}/resolv.conf`, "");
    const containerd = part("containerd", findTool("containerd", PATH)!, ["--config", `${folder}/containerd.toml`]);
    const inNode = async (command: string, args: string[]) =>
      (await run("nsenter", [...enter(namespaces.pid), command, ...args], { maxBuffer: 64 << 20 })).stdout;
    const images = async (...args: string[]) => {
      await inNode("ctr", ["--address", at.containerdSocket, "--namespace", "k8s.io", "images", ...args]);
    };
    const importAll = async () => {
      await until("containerd answers", () => existsSync(at.containerdSocket), [containerd]);
      for (const archive of archives) await images("import", archive);
    };
    const imported = importAll();
    imported.catch(() => {}); // awaited below

    controlPlane = await startControlPlane(await apiServerOptions(folder));
    const kubeconfigOf = (user: string) => nodeKubeconfig(controlPlane!, folder, user);
    part("kube-controller-manager", binaries["kube-controller-manager"], [
      ...["--kubeconfig", kubeconfigOf("system:kube-controller-manager"), "--leader-elect=false", "--secure-port=0"],
      ...["--service-account-private-key-file", controlPlane.serviceAccountKeyFile],
      ...["--root-ca-file", controlPlane.caFile, "--node-monitor-grace-period=40s"],
      // With its default of 20 requests per second it deletes a namespace's objects in seconds, not at once.
      ...["--kube-api-qps=500", "--kube-api-burst=1000"],
    ]);
    part("kube-scheduler", binaries["kube-scheduler"], [
      ...["--kubeconfig", kubeconfigOf("system:kube-scheduler"), "--leader-elect=false", "--secure-port=0"],
    ]);
    await until("containerd answers", () => existsSync(at.containerdSocket), [containerd]);
    writeFileSync(`${folder}/kubelet.json`, config.kubeletConfig(folder, `/${cgroup}`));
    part("kubelet", binaries.kubelet, [
      ...["--config", `${folder}/kubelet.json`, "--kubeconfig", kubeconfigOf(`system:node:${NODE_NAME}`)],
      ...["--root-dir", at.kubelet, "--cert-dir", `${folder}/kubelet-certificates`],
      ...["--hostname-override", NODE_NAME, "--node-ip", ADDRESSES.node],
    ]);
    writeFileSync(`${folder}/kube-proxy.json`, config.kubeProxyConfig(kubeconfigOf("system:kube-proxy")));
    part("kube-proxy", binaries["kube-proxy"], ["--config", `${folder}/kube-proxy.json`]);
    writeFileSync(`${folder}/Corefile`, config.corefile(kubeconfigOf("coredns")));
    part("coredns", binaries.coredns, ["-conf", `${folder}/Corefile`]);

    let ready = false;
    void untilReady(binaries.kubectl, controlPlane).then(
      () => (ready = true),
      (error) => log(error.message),
    );
    await until("the node is ready", () => ready, [...parts.values()]);
    await imported;
    let stopped = false;
    return {
      controlPlane,
      kubeconfig: controlPlane.kubeconfig,
      folder,
      cgroup,
      kubectl: binaries.kubectl,
      pid: namespaces.pid,
      async restart(name, downSeconds) {
        const { file, args, kill } = parts.get(name)!;
        await kill();
        await sleep(downSeconds * 1000);
        if (!stopped) part(name, file, args);
      },
      inNode,
      importImage: (archive) => images("import", archive),
      tagImage: (name, other) => images("tag", name, other),
      logs: (lines = 5) => [...parts.values()].map((of) => `${of.name}:\n${of.tail(lines)}`).join("\n"),
      stop() {
        stopped = true;
        return stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The API server listens where the node can reach it, and shows kubelets a certificate. */
async function apiServerOptions(folder: string) {
  const validSeconds = 7 * 24 * 3600;
  const authority = await createAuthority({ validSeconds }, "longrun-test-kubelets");
  const client = await createCertificate(authority, { role: "controller", name: "kube-apiserver", validSeconds });
  writeFileSync(`${folder}/kubelet-client-ca.crt`, authority.certificate);
  writeFileSync(`${folder}/kubelet-client.crt`, client.certificate);
  writeFileSync(`${folder}/kubelet-client.key`, client.key, { mode: 0o600 });
  return {
    hosts: [ADDRESSES.machine, ADDRESSES.apiService, "kubernetes", "kubernetes.default"],
    users: {
      "system:kube-controller-manager": ["system:masters"],
      "system:kube-scheduler": [],
      "system:kube-proxy": [],
      [`system:node:${NODE_NAME}`]: ["system:nodes"],
      coredns: ["system:masters"],
    },
    apiServer: {
      "bind-address": "0.0.0.0",
      "advertise-address": ADDRESSES.machine,
      "authorization-mode": "Node,RBAC",
      "kubelet-client-certificate": `${folder}/kubelet-client.crt`,
      "kubelet-client-key": `${folder}/kubelet-client.key`,
      "kubelet-preferred-address-types": "InternalIP",
      // With a controller manager there are service accounts, and pods dial the service `kubernetes`.
      "disable-admission-plugins": undefined,
      "endpoint-reconciler-type": undefined,
    },
  };
}

/** Returns the control plane's kubeconfig of `user`, with the node's address of the API server. */
function nodeKubeconfig(controlPlane: ControlPlane, folder: string, user: string): string {
  const path = `${folder}/kubeconfig-${user.replaceAll(":", "-")}`;
  const server = `https://${ADDRESSES.machine}:${new URL(controlPlane.url).port}`;
  const text = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority": controlPlane.caFile } }],
    users: [{ name: user, user: { token: controlPlane.tokenOf(user) } }],
    contexts: [{ name: "test", context: { cluster: "test", user } }],
    "current-context": "test",
  };
  writeFileSync(path, JSON.stringify(text), { mode: 0o600 });
  return path;
}

/** First process of the node. It ends with its standard input, a pipe from this process. */
const FIRST_PROCESS = `
set -e
mount --make-rshared /
for path in /run /var/log; do mount -t tmpfs tmpfs "$path"; done
mkdir -p /run/lock
for path in $FIXED_FOLDERS; do mount -t tmpfs tmpfs "$path"; done
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo $(readlink /proc/self/ns/net) >&3
exec 3>&-
cat >/dev/null`;

/** Ends when the namespaces have ended. $1: the first process's script, $2: folder, $3: cgroup. */
const OUTER_SHELL = `
# Where the CNI library and the kubelet write whatever they are told; the node sees folders of its own in their place.
export FIXED_FOLDERS="/var/lib/cni /var/lib/kubelet"
for path in $FIXED_FOLDERS; do [ -d "$path" ] || { mkdir -p "$path"; made="$made $path"; }; done
for controllers in /sys/fs/cgroup/cgroup.controllers; do
  [ -e "$controllers" ] && for name in cpu cpuset memory pids; do echo "+$name" >/sys/fs/cgroup/cgroup.subtree_control; done
done 2>/dev/null
roots=$(if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/*; fi)
for root in $roots; do mkdir -p "$root/$3"; done
unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private sh -c "$1"
[ -z "$made" ] || rmdir $made
for try in 1 2 3 4 5 6 7 8 9 10; do
  for root in $roots; do [ -d "$root/$3" ] && find "$root/$3" -depth -type d -exec rmdir {} \\; ; done 2>/dev/null
  rm -rf --one-file-system "$2" && break
  sleep 0.5
done`;

interface Namespaces {
  /** Process id of the node's first process, on this machine. */
  pid: number;
  stop(): Promise<void>;
}

async function startNamespaces(folder: string, cgroup: string): Promise<Namespaces> {
  const shell: ChildProcess = spawn("sh", ["-c", OUTER_SHELL, "sh", FIRST_PROCESS, folder, cgroup], {
    stdio: ["pipe", "ignore", "pipe", "pipe"],
    detached: true,
  });
  let problems = "";
  shell.stderr!.on("data", (chunk) => (problems += chunk));
  const exited = once(shell, "exit");
  const netns = await Promise.race([
    once(shell.stdio[3]!, "data").then(([chunk]) => String(chunk).trim()),
    exited.then(() => undefined),
  ]);
  const stop = async () => {
    shell.stdin!.end();
    const late = sleep(STOP_TIMEOUT_SECONDS * 1000, "late", { ref: false });
    if ((await Promise.race([exited, late])) === "late")
      throw new Error(`the node did not end within ${STOP_TIMEOUT_SECONDS} s; see process ${shell.pid} and ${folder}`);
  };
  if (netns === undefined) throw new Error(`the node's namespaces could not be made: ${problems.trim()}`);
  const children = readFileSync(`/proc/${shell.pid}/task/${shell.pid}/children`, "utf8").trim();
  const first = readFileSync(`/proc/${children}/task/${children}/children`, "utf8").trim();
  return { pid: Number(first), stop };
}

/** Makes a pair of virtual links, which ends with the node's network namespace. */
async function linkMachineAndNode(pid: number): Promise<void> {
  const link = `longrun${pid}`.slice(0, 15);
  const { machine, node, linkPrefix } = ADDRESSES;
  const taken = (await run("ip", ["-o", "address", "show", "to", `${machine}/${linkPrefix}`])).stdout.trim();
  if (taken) throw new Error(`another node for tests runs on this machine, or its addresses are in use: ${taken}`);
  await run("ip", ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", String(pid)]);
  await run("ip", ["address", "add", `${machine}/${linkPrefix}`, "dev", link]);
  await run("ip", ["link", "set", link, "up"]);
  const inNode = (args: string[]) => run("nsenter", [...enter(pid), "ip", ...args]);
  await inNode(["address", "add", `${node}/${linkPrefix}`, "dev", "eth0"]);
  await inNode(["link", "set", "eth0", "up"]);
  await inNode(["route", "add", "default", "via", machine]);
}

const enter = (pid: number) => ["--target", String(pid), "--mount", "--net", "--pid", "--"];

interface Part {
  name: NodePart;
  file: string;
  args: string[];
  /** Kills it and waits for its end. */
  kill(): Promise<void>;
  /** Returns why it has ended, or undefined. */
  ended(): string | undefined;
  tail(lines: number): string;
}

/** Starts parts in the node's namespaces; their process ids are in `pids/`, their output in `logs/`. */
function partStarter(pid: number, folder: string) {
  const at = nodeFolders(folder);
  return (name: NodePart, file: string, args: string[]): Part => {
    const logFile = `${at.logs}/${name}.log`;
    const log = openSync(logFile, "a");
    const child = spawn("nsenter", [...enter(pid), file, ...args], {
      stdio: ["ignore", log, log],
      detached: true,
      env: { ...process.env, PATH },
    });
    closeSync(log);
    let failure: Error | undefined;
    child.on("error", (error) => (failure = error));
    child.unref();
    if (child.pid) writeFileSync(`${at.pids}/${name}.pid`, `${child.pid}\n`);
    const tail = (lines: number) => readFileSync(logFile, "utf8").trim().split("\n").slice(-lines).join("\n");
    const ended = () => {
      if (failure === undefined && child.exitCode === null && child.signalCode === null) return undefined;
      return `${name} ended with ${failure?.message ?? child.signalCode ?? child.exitCode}:\n${tail(8)}`;
    };
    const kill = async () => {
      // nsenter waits for the part, its only child.
      const part = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
      const exited = once(child, "exit");
      process.kill(Number(part), "SIGKILL");
      await exited;
    };
    return { name, file, args, ended, tail, kill };
  };
}

async function until(what: string, holds: () => boolean | Promise<boolean>, parts: Part[]): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_SECONDS * 1000;
  while (!(await holds())) {
    const ended = parts.map((part) => part.ended()).find((reason) => reason !== undefined);
    if (ended) throw new Error(ended);
    if (performance.now() > deadline) {
      const logs = parts.map((part) => `${part.name}: ${part.tail(3)}`).join("\n");
      throw new Error(`not within ${READY_TIMEOUT_SECONDS} s: ${what}\n${logs}`);
    }
    await sleep(50);
  }
}

/** Waits as long as it takes: the caller looks whether the parts still run. */
async function untilReady(kubectl: string, { kubeconfig }: ControlPlane): Promise<void> {
  const wait = (what: string) =>
    run(kubectl, ["--kubeconfig", kubeconfig, "wait", `node/${NODE_NAME}`, `--for=${what}`, "--timeout=10m"]);
  await wait("create");
  await wait("condition=Ready");
}

if (import.meta.main) {
  try {
    const cluster = await startCluster({ log: (line) => process.stderr.write(`${line}\n`) });
    process.stdout.write(`export KUBECONFIG=${cluster.kubeconfig}\n`);
    await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    await cluster.stop();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
