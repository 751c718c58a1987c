/**
 * Gives each slot a control group, if the actor starts its sandboxes itself and its user can make a group (root, or a delegated group). The
 * kernel then enforces limits that the zygote's watch might notice too late. The zygote is in the group and forks programs, so each program
 * is in it from its first instruction. In a pod the kubelet makes a group with the container's limits.
 *
 * Supports version 2, and version 1 for memory and pids. Limits change with each execution.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isAlive } from "./is-alive.ts";

/** File names in both versions. */
const FILES = {
  2: { limit: "memory.max", usage: "memory.current", events: "memory.events", swap: "memory.swap.max" },
  1: { limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes", events: "memory.oom_control", swap: undefined },
} as const;
/** Processes beside the program: the zygote, its process that waits for the program, the next child, and one that is being forked. */
const OTHER_PROCESSES = 5;
/**
 * For page tables, stacks and the zygote's own memory while a program runs, and for what a program can fill before the watch sees it (sockets
 * take a gigabyte a second). If the group is full, the kernel may kill the zygote after the program: with 64 MiB it often did on a busy machine.
 */
const RESERVE_BYTES = 256 * 2 ** 20;

interface ControlGroupPlace {
  root?: string;
  /** File that lists the groups of this process. */
  membership?: string;
  /** For tests, because only the kernel puts files into a new group. */
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

  /**
   * Makes a new group below or beside this process's group. Returns undefined if that is not possible. Also removes empty groups of dead
   * actors.
   */
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

  /** Moves a process into the group, before the process has forked. @returns whether the kernel allowed it */
  add(pid: number): boolean {
    return this.#paths.every((path) => write(join(path, "cgroup.procs"), pid));
  }

  /** Records the current memory (the zygote with its packages imported) as not the programs' own. */
  start(): void {
    this.#baseBytes = Number(read(join(this.#memory, FILES[this.version].usage))) || 0;
  }

  /** Sets limits. `memoryBytes`: one program with all its processes; `filesBytes`: files in memory, in addition. */
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

  /** Returns how many processes the kernel has killed in this group for lack of memory. */
  oomKills(): number {
    return Number(/^oom_kill (\d+)$/m.exec(read(join(this.#memory, FILES[this.version].events)))?.[1] ?? 0);
  }

  /** Removes the group. All its processes must have ended. */
  remove(): void {
    for (const path of this.#paths) removeGroup(path);
  }
}

/** Returns {controller: path} for version 1; the empty name stands for version 2. */
function membershipsOf(text: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.trim().split("\n")) {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const controller of controllers.split(",")) groups.set(controller, path);
  }
  return groups;
}

/**
 * Returns groups that can have children with limits. Apart from a hierarchy's root, a group with such children may contain no processes, so
 * the kernel usually refuses our own group. A group beside our own is not bound by the limits of our own, which must then have none.
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

/** @returns the new group's path, if the actor may set its limits */
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
    // Read-only, or owned by another user.
  }
  return undefined;
}

function removeGroup(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // A process in it has not ended yet; the next actor removes the empty group.
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}

/** @returns false if the kernel lacks this file or forbids the write; only the watch then enforces the limit */
function write(path: string, value: string | number): boolean {
  try {
    writeFileSync(path, String(value));
    return true;
  } catch {
    return false;
  }
}
