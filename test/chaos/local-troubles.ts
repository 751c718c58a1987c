/** The troubles of `longrun run` on one machine. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parentOf, type RealRun } from "../faults/real-run.ts";
import type { Ability } from "./abilities.ts";
import type { Random, Trouble } from "./trouble.ts";

export interface LocalRun {
  /** The command that runs now. */
  command: RealRun;
  readonly directory: string;
  readonly volume: string;
  /** Moves the clock of a part by `seconds`. */
  setClock(part: string, seconds: number): void;
}

/** Longest wait for a killed part to come back. */
const BACK_SECONDS = 6;
/** Seconds by which clocks jump. */
const JUMPS = [5, 60, 3600, 86_400];
const FILLER_BYTES = 2 ** 24;

type Part = "command" | "learner" | "actor" | "fork server" | "sandbox" | "program";
const PARTS: readonly Part[] = ["command", "learner", "actor", "fork server", "sandbox", "program"];

/** Returns the troubles that this machine can cause. */
export function localTroubles(run: LocalRun, can: ReadonlySet<Ability>): Trouble[] {
  const troubles: Trouble[] = PARTS.flatMap((part) => {
    const weight = part === "command" ? 0.5 : 2;
    return [
      { name: `SIGKILL ${part}`, weight, strike: (random: Random) => kill(run, part, "SIGKILL", random) },
      { name: `SIGTERM ${part}`, weight, strike: (random: Random) => kill(run, part, "SIGTERM", random) },
      { name: `SIGSTOP ${part}`, weight, strike: (random: Random) => pause(run, part, random) },
    ];
  });
  troubles.push(
    { name: "Ctrl-C", weight: 0.5, strike: (random) => interrupt(run, random) },
    { name: "the machine sleeps", weight: 1, strike: (random) => pauseAll(run, random) },
  );
  if (can.has("volumes"))
    troubles.push(
      { name: "full volume", weight: 1, strike: (random) => fill(run, random) },
      { name: "read-only volume", weight: 1, strike: (random) => lock(run, random) },
    );
  if (can.has("resets")) troubles.push({ name: "connections reset", weight: 2, strike: async () => reset(run) });
  if (can.has("filters"))
    troubles.push(
      { name: "half-open connections", weight: 2, strike: (random) => cut(run, random, "the actors' connections") },
      { name: "learner unreachable", weight: 2, strike: (random) => cut(run, random, "the learner's port") },
    );
  if (can.has("network"))
    troubles.push({ name: "network down", weight: 1, strike: (random) => cut(run, random, "the network") });
  if (can.has("clocks"))
    troubles.push(
      { name: "clock forwards", weight: 2, strike: (random) => jump(run, random, 1) },
      { name: "clock backwards", weight: 2, strike: (random) => jump(run, random, -1) },
    );
  return troubles;
}

/** Returns the processes of a part that run now. */
function pidsOf({ command }: LocalRun, part: Part): number[] {
  if (part === "command")
    return command.child.exitCode === null && command.child.signalCode === null ? [command.child.pid!] : [];
  const all = command.descendants();
  const named = (text: string) => all.filter((it) => it.command.includes(text)).map(({ pid }) => pid);
  if (part === "learner" || part === "actor") return named(`${part}/main.ts`);
  const actors = named("actor/main.ts");
  const below = (parents: number[]) => all.filter(({ pid }) => parents.includes(parentOf(pid))).map(({ pid }) => pid);
  const servers = below(actors);
  const sandboxes = below(servers);
  if (part === "fork server") return servers;
  if (part === "sandbox") return sandboxes;
  const above = [...servers, ...sandboxes];
  return all.filter(({ pid, command }) => command.includes("zygote.py") && !above.includes(pid)).map(({ pid }) => pid);
}

async function kill(run: LocalRun, part: Part, signal: NodeJS.Signals, random: Random): Promise<string | undefined> {
  const before = pidsOf(run, part);
  if (before.length === 0) return undefined;
  const pid = random.pick(before);
  if (!send(pid, signal)) return undefined;
  if (part === "program") return `${part} ${pid}`;
  const since = performance.now();
  while (performance.now() - since < BACK_SECONDS * 1000) {
    await sleep(100);
    const young = pidsOf(run, part).find((it) => !before.includes(it));
    if (young) return `${part} ${pid}, back as ${young} after ${secondsSince(since)} s`;
  }
  const stays = pidsOf(run, part).includes(pid) ? "still there" : "not back";
  return `${part} ${pid}, ${stays} after ${BACK_SECONDS} s`;
}

/** Pauses a part, for less or more time than heartbeats, leases and stops take. */
async function pause(run: LocalRun, part: Part, random: Random): Promise<string | undefined> {
  const pids = pidsOf(run, part);
  if (pids.length === 0) return undefined;
  const pid = random.pick(pids);
  if (!send(pid, "SIGSTOP")) return undefined;
  const seconds = random.between(0.2, 10);
  await sleep(seconds * 1000);
  return `${part} ${pid}, ${send(pid, "SIGCONT") ? "on" : "gone"} after ${seconds.toFixed(1)} s`;
}

async function pauseAll(run: LocalRun, random: Random): Promise<string | undefined> {
  const stopped = new Set<number>();
  // Twice, because processes may have been forked meanwhile.
  for (let i = 0; i < 2; i++)
    for (const pid of [...pidsOf(run, "command"), ...run.command.descendants().map(({ pid }) => pid)])
      if (!stopped.has(pid) && send(pid, "SIGSTOP")) stopped.add(pid);
  if (stopped.size === 0) return undefined;
  const seconds = random.between(1, 12);
  await sleep(seconds * 1000);
  for (const pid of stopped) send(pid, "SIGCONT");
  return `${stopped.size} processes, on after ${seconds.toFixed(1)} s`;
}

async function interrupt(run: LocalRun, random: Random): Promise<string | undefined> {
  const [pid] = pidsOf(run, "command");
  const { command } = run;
  if (!pid || !send(pid, "SIGINT")) return undefined;
  const twice = random.next() < 0.3;
  if (twice) {
    await sleep(random.between(20, 2000));
    send(pid, "SIGINT");
  }
  const { status } = await command.ended;
  return `command ${pid}${twice ? " twice" : ""}, ended with ${status}`;
}

async function fill({ volume }: LocalRun, random: Random): Promise<string> {
  const filler = join(volume, "filler");
  const bytes = Buffer.alloc(FILLER_BYTES);
  const seconds = random.between(0.5, 8);
  try {
    for (const since = performance.now(); performance.now() - since < seconds * 1000; await sleep(100))
      try {
        for (;;) writeFileSync(filler, bytes, { flag: "a" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      }
  } finally {
    rmSync(filler, { force: true });
  }
  return `room again after ${seconds.toFixed(1)} s`;
}

/** From now on files open read-only, as on a disk that fails; open files stay writable. */
async function lock({ directory }: LocalRun, random: Random): Promise<string | undefined> {
  try {
    execFileSync("mount", ["--bind", directory, directory], { stdio: "pipe" });
  } catch {
    return undefined; // the run folder is not there yet
  }
  const seconds = random.between(0.5, 8);
  try {
    execFileSync("mount", ["-o", "remount,ro,bind", directory]);
    await sleep(seconds * 1000);
  } finally {
    execFileSync("umount", ["--lazy", directory]);
  }
  return `writable after ${seconds.toFixed(1)} s`;
}

async function jump(run: LocalRun, random: Random, direction: 1 | -1): Promise<string | undefined> {
  const part = random.pick<Part>(["command", "learner", "actor"]);
  if (pidsOf(run, part).length === 0) return undefined;
  const jumped = random.pick(JUMPS) * direction;
  const seconds = random.between(2, 12);
  run.setClock(part, jumped);
  await sleep(seconds * 1000);
  run.setClock(part, 0);
  return `${part}'s by ${jumped} s, right again after ${seconds.toFixed(1)} s`;
}

/** Ends all TCP connections of the run at once. */
function reset(run: LocalRun): string | undefined {
  try {
    const inside = networkOf(run);
    const open = inside?.("ss", "-Htn", "state", "established").trim().split("\n").filter(Boolean) ?? [];
    if (open.length === 0) return undefined;
    inside!("ss", "-K", "-tn", "state", "established");
    return `${open.length} sockets`;
  } catch {
    return undefined; // the command ended meanwhile, and its network with it
  }
}

async function cut(run: LocalRun, random: Random, what: string): Promise<string | undefined> {
  const inside = networkOf(run);
  const port = /--learner \S+:(\d+) /.exec(
    run.command
      .descendants()
      .map((it) => it.command)
      .join("\n"),
  )?.[1];
  if (!inside || !port) return undefined;
  const seconds = random.between(0.5, 10);
  const rules = [
    ["--dport", port],
    ["--sport", port],
  ];
  if (what === "the actors' connections") {
    const actors = pidsOf(run, "actor").map((pid) => `pid=${pid},`);
    const lines = inside("ss", "-Htnp", "state", "established", "dport", "=", `:${port}`).split("\n");
    const ports = lines
      .filter((line) => actors.some((pid) => line.includes(pid)))
      .map((line) => /:(\d+)\s+\S+:\d+\s/.exec(line)![1]!);
    if (ports.length === 0) return undefined;
    rules.splice(
      0,
      2,
      ...ports.flatMap((own) => [
        ["--sport", own],
        ["--dport", own],
      ]),
    );
  }
  const change = (action: string) => {
    if (what === "the network") inside("ip", "link", "set", "lo", action === "-A" ? "down" : "up");
    else for (const rule of rules) inside("iptables", action, "INPUT", "-p", "tcp", ...rule, "-j", "DROP");
  };
  change("-A");
  await sleep(seconds * 1000);
  if (pidsOf(run, "command").length === 0 || networkOf(run) === undefined) return `${what}, until the command ended`;
  try {
    change("-D");
  } catch {
    return `${what}, until the command ended`; // its network is gone
  }
  return `${what}, back after ${seconds.toFixed(1)} s`;
}

/** Returns a function that runs a command in the network of the run, and returns its output. */
function networkOf(run: LocalRun): ((...command: string[]) => string) | undefined {
  const [pid] = pidsOf(run, "command");
  if (!pid) return undefined;
  return (...command) =>
    execFileSync("nsenter", [`--net=/proc/${pid}/ns/net`, ...command], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
}

function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

const secondsSince = (since: number): string => ((performance.now() - since) / 1000).toFixed(1);
