/** The state of a machine that a test's cluster could change, so that a test can check that it has not. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

interface MachineState {
  links: string[];
  routes: string[];
  packetFilter: string[];
  mounts: string[];
  networkNamespaces: string[];
  cgroups: string[];
  folders: string[];
}

export function machineState(): MachineState {
  return {
    links: lines("ip", ["-o", "link"]).map((line) => line.split(":")[1]!.trim()),
    routes: lines("ip", ["route"]),
    packetFilter: lines("iptables-save", []).filter((line) => /^[-*:]/.test(line) && !/^:.* \[/.test(line)),
    mounts: readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? ""),
    networkNamespaces: list("/run/netns"),
    cgroups: list("/sys/fs/cgroup").flatMap((name) =>
      list(`/sys/fs/cgroup/${name}`).filter((it) => /longrun|kube/.test(it) && !isOfMachine(it)),
    ),
    folders: [...list("/var/tmp"), ...list("/var/lib"), ...list("/run"), ...list("/opt")].filter((it) =>
      /longrun|cni|kubelet|containerd/.test(it),
    ),
  };
}

/**
 * Returns whether a control group is of an actor that runs on the machine itself (actor/control-group.ts). Groups of a cluster's actors are
 * below those of their pods. The next actor removes what a killed one left.
 */
function isOfMachine(cgroup: string): boolean {
  return /^longrun-\d+-/.test(cgroup);
}

/** Returns what appeared between two states. Other programs may have removed something meanwhile. */
export function whatIsNew(before: MachineState, after: MachineState): string[] {
  const kinds = Object.keys(before) as (keyof MachineState)[];
  return kinds.flatMap((kind) => after[kind].filter((it) => !before[kind].includes(it)).map((it) => `${kind}: ${it}`));
}

/** Returns command lines of processes that contain any of `texts`. */
export function processesThatName(...texts: string[]): string[] {
  const commands = list("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  return commands.map(commandLine).filter((command) => texts.some((text) => command.includes(text)));
}

/**
 * Returns process ids on this machine.
 *
 * @param cgroup part of their cgroup's path: the node's name, or a pod's uid
 * @param command part of their command line
 */
export function findInCgroup(cgroup: string, command = ""): number[] {
  return list("/proc")
    .filter((name) => /^\d+$/.test(name) && commandLine(name).includes(command))
    .filter((name) => read(`/proc/${name}/cgroup`).includes(cgroup))
    .map(Number);
}

const commandLine = (pid: string) => read(`/proc/${pid}/cmdline`).replaceAll("\0", " ");

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the process has ended meanwhile
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function lines(command: string, args: string[]): string[] {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
    .split("\n")
    .filter(Boolean);
}
