/**
 * A control group for each slot of an actor that starts its sandboxes itself, where this user can make one (root, or a
 * delegated group): the kernel then holds what the zygote's watch might see too late. A program is in it from its first
 * instruction, because the zygote is, which forks it. In a pod the kubelet does this, with the container's limits.
 *
 * Version 2, and version 1 where memory and pids are still there. Limits change with each execution.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isAlive } from "./is-alive.ts";

/** Names of the files of both versions. */
const FILES = {
  2: { limit: "memory.max", usage: "memory.current", events: "memory.events", swap: "memory.swap.max" },
  1: { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", events: "memory.oom_control", swap: undefined },
} as const;
/** Beside the program: the zygote, who waits for it, the next child, and one on its way. */
const OTHER_PROCESSES = 5;
/** Page tables, stacks and what the zygote itself needs while a program runs. */
const RESERVE_BYTES = 64 * 2 ** 20;

export interface ControlGroupPlace {
  root?: string;
  /** Lists the groups of this process. */
  membership?: string;
  /** For tests, where no kernel puts files into a new group. */
  mkdir?: (path: string) => void;
}

export class ControlGroup {
  readonly version: 1 | 2;
  readonly #memory: string;
  readonly #pids: string | undefined;
  readonly #paths: string[];
  #baseBytes = 0;
  #applied = "";

  private constructor(version: 1 | 2, memory: string, pids: string | undefined) {
    this.version = version;
    this.#memory = memory;
    this.#pids = pids;
    this.#paths = [...new Set([memory, ...(pids === undefined ? [] : [pids])])];
  }

  /** A new group below the one we are in, or beside it; undefined where there can be none. Empty ones of dead actors go. */
  static make(place: ControlGroupPlace = {}): ControlGroup | undefined {
    const { root = "/sys/fs/cgroup", membership = "/proc/self/cgroup", mkdir = mkdirSync } = place;
    const name = `longrun-${process.pid}-${Math.random().toString(36).slice(2, 10)}`;
    let groups: Map<string, string>;
    try {
      groups = membershipsOf(readFileSync(membership, "utf8"));
    } catch {
      return undefined;
    }
    for (const parent of parentsOfVersion2(join(root, groups.get("") ?? "/"))) {
      const path = makeBelow(parent, name, mkdir);
      if (path) return new ControlGroup(2, path, path);
    }
    const first = (controller: string) =>
      [groups.get(controller), "/"].flatMap((path) => {
        const made = path === undefined ? undefined : makeBelow(join(root, controller, path), name, mkdir);
        return made ?? [];
      })[0];
    const memory = first("memory");
    return memory === undefined ? undefined : new ControlGroup(1, memory, first("pids"));
  }

  /** Moves a process in, before it has forked anything. @returns whether that was allowed */
  add(pid: number): boolean {
    return this.#paths.every((path) => write(join(path, "cgroup.procs"), pid));
  }

  /** What is in it now, with its packages imported, is not the programs'. */
  start(): void {
    this.#baseBytes = Number(read(join(this.#memory, FILES[this.version].usage))) || 0;
  }

  /** `memoryBytes` of one program with all its processes; files in memory come on top (`filesBytes`). */
  limit(limits: { memoryBytes: number; filesBytes: number; processes: number }): void {
    const bytes = Math.ceil(this.#baseBytes + limits.memoryBytes + limits.filesBytes + RESERVE_BYTES);
    const wanted = `${bytes} ${limits.processes}`;
    if (wanted === this.#applied) return;
    const { limit, swap } = FILES[this.version];
    write(join(this.#memory, limit), bytes);
    if (swap) write(join(this.#memory, swap), 0);
    if (this.#pids) write(join(this.#pids, "pids.max"), limits.processes + OTHER_PROCESSES);
    this.#applied = wanted;
  }

  /** How many processes the kernel has killed here for memory. */
  oomKills(): number {
    return Number(/^oom_kill (\d+)$/m.exec(read(join(this.#memory, FILES[this.version].events)))?.[1] ?? 0);
  }

  /** Once all its processes are gone. */
  remove(): void {
    for (const path of this.#paths) removeGroup(path);
  }
}

/** Controller -> path of version 1; the empty name is version 2. */
function membershipsOf(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.trim().split("\n")) {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const controller of controllers.split(",")) groups.set(controller, path);
  }
  return groups;
}

/**
 * Groups whose children have limits. In our own that needs it to be free of processes but us, which only the root of a
 * hierarchy need not be; beside it we are not bound by its limits, so it must have none.
 */
function parentsOfVersion2(own: string): string[] {
  const unlimited = ["", "max"].includes(read(join(own, "memory.max")));
  return [own, ...(unlimited ? [dirname(own)] : [])].filter((path) => {
    const has = (file: string) =>
      ["memory", "pids"].every((name) => read(join(path, file)).split(/\s+/).includes(name));
    if (!has("cgroup.controllers")) return false;
    if (!has("cgroup.subtree_control")) write(join(path, "cgroup.subtree_control"), "+memory +pids");
    return has("cgroup.subtree_control");
  });
}

/** @returns its path, if it has limits that we may set */
function makeBelow(parent: string, name: string, mkdir: (path: string) => void): string | undefined {
  try {
    for (const entry of readdirSync(parent)) {
      const pid = Number(/^longrun-(\d+)-/.exec(entry)?.[1]);
      if (pid && !isAlive(pid)) removeGroup(join(parent, entry));
    }
    if (!existsSync(join(parent, "cgroup.procs"))) return undefined;
    const path = join(parent, name);
    mkdir(path);
    const files = ["memory.max", "memory.limit_in_bytes", "pids.max"].map((file) => join(path, file));
    if (files.some((file) => existsSync(file) && write(file, file.endsWith("max") ? "max" : -1))) return path;
    removeGroup(path);
  } catch {
    // Read-only, or not ours.
  }
  return undefined;
}

function removeGroup(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // A process in it is still on its way out; the next actor takes the empty group away.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

/** @returns false with a kernel without this file, or one that does not let us: the watch then holds the limit alone */
function write(path: string, value: string | number): boolean {
  try {
    writeFileSync(path, String(value));
    return true;
  } catch {
    return false;
  }
}
