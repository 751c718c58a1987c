/** Lists the layers that isolate programs on this machine, and the missing layers, for logs, people and the learner's metrics. */
import { MISSING_LAYERS } from "../proto/isolation.ts";
import type { SandboxInfo } from "./zygote-messages.ts";

export { MISSING_LAYERS } from "../proto/isolation.ts";

type MissingLayer = (typeof MISSING_LAYERS)[number];

/** The consequence of each missing layer. */
const MISSING: Record<MissingLayer, string> = {
  namespaces: "programs have one process, and can read names, sizes and times of files",
  landlock: "namespaces and seccomp alone protect files and restrict signals",
  landlockTruncate: "Landlock below ABI 3: seccomp alone prevents truncation",
  landlockTcp: "Landlock below ABI 4: seccomp alone prevents connections",
  landlockScopes: "Landlock below ABI 6: seccomp alone restricts signals and abstract sockets",
  ownUser: "programs run as the actor's own user",
  controlGroup: "rlimits and a check every 25 ms limit memory and processes, not a control group",
  processCount: "Linux below 5.14: a check limits the number of processes, not the kernel",
  proc: "programs have no /proc",
};

export interface Layers {
  /** In the order of application. */
  applied: string[];
  missing: MissingLayer[];
}

/** @returns no layer applied and none missing at `none`, because the level is enough information */
export function layersOf(info: SandboxInfo): Layers {
  const { level, landlockAbi, ownUser, controlGroup, memoryBytes } = info;
  if (level === "none") return { applied: [], missing: [] };
  const namespaces = level === "namespaces";
  // In a pod, programs have a container and a user of their own, and the kernel enforces the container's limit.
  const inContainer = info.directory !== undefined;
  const held = controlGroup !== undefined || (inContainer && memoryBytes !== undefined);
  const applied = [
    namespaces && "namespaces",
    ownUser && "own user",
    inContainer && "own container",
    controlGroup !== undefined && `control group (v${controlGroup})`,
    "rlimits",
    "no capabilities",
    landlockAbi > 0 && `Landlock ABI ${landlockAbi}`,
    "seccomp",
  ];
  const missing: Record<MissingLayer, boolean> = {
    namespaces: !namespaces,
    landlock: landlockAbi === 0,
    landlockTruncate: landlockAbi > 0 && landlockAbi < 3,
    landlockTcp: landlockAbi > 0 && landlockAbi < 4,
    landlockScopes: landlockAbi > 0 && landlockAbi < 6,
    ownUser: !ownUser && !inContainer,
    controlGroup: !held,
    // Without namespaces a program has one process.
    processCount: namespaces && !info.processesCounted,
    proc: namespaces && !info.procMounted,
  };
  return {
    applied: applied.filter((layer) => layer !== false),
    missing: MISSING_LAYERS.filter((layer) => missing[layer]),
  };
}

/** Returns one line about the applied layers, for logs and people. */
export function describeIsolation(info: SandboxInfo): string {
  if (info.level === "none") return "NO ISOLATION: programs run with all rights of this user";
  const { applied, missing } = layersOf(info);
  const lacks = missing.length === 0 ? "nothing is missing" : `missing: ${missing.map(describeMissing).join("; ")}`;
  return `${info.level}: ${applied.join(" + ")}; ${lacks}`;
}

export function describeMissing(layer: MissingLayer): string {
  return `${layer} (${MISSING[layer]})`;
}
