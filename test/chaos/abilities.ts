/** What this machine lets `--local` do to a run. Each ability is tried before the first run: a program may exist and the kernel refuse. */
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { missingTools, type Tool } from "../tools.ts";

export type Ability = "volumes" | "network" | "filters" | "resets" | "clocks";

interface Try {
  tools: readonly Tool[];
  needsRoot: boolean;
  /** A shell's script, which fails where the ability is missing. */
  script: string;
  /** The troubles that are left out. */
  without: string;
}

/** The network's troubles strike in a network of the run's own. */
const NETWORK = ["unshare", "nsenter", "ip"] as const;
const inNetwork = (script: string) =>
  `exec unshare --net sh -ec 'ip link set lo up; nsenter --net=/proc/self/ns/net ${script}'`;
/** Connects to itself, and ends with 0 once `ss -K` has ended the connection: a kernel may ignore it (CONFIG_INET_DIAG_DESTROY). */
const RESET = `
const { connect, createServer } = require("node:net");
const server = createServer().listen(0, "127.0.0.1", () => {
  const client = connect(server.address().port, "127.0.0.1", () => {
    require("node:child_process").spawnSync("ss", ["-K", "-tn", "state", "established"], { stdio: "inherit" });
    setTimeout(() => { console.error("the kernel ignores ss -K"); process.exit(1); }, 500);
  });
  client.on("error", () => process.exit(0));
});`.replaceAll("\n", " ");

const TRIES: Record<Ability, Try> = {
  volumes: {
    tools: ["unshare", "mount"],
    needsRoot: true,
    script: `exec unshare --mount mount -t tmpfs tmpfs '${tmpdir()}'`,
    without: "no full or read-only volumes",
  },
  network: {
    tools: NETWORK,
    needsRoot: true,
    script: inNetwork("true"),
    without: "no network that is down",
  },
  filters: {
    tools: [...NETWORK, "iptables", "ss"],
    needsRoot: true,
    script: inNetwork("iptables -A INPUT -p tcp --dport 1 -j DROP; ss -Htnp"),
    without: "no half-open connections, no unreachable learner",
  },
  resets: {
    tools: [...NETWORK, "ss"],
    needsRoot: true,
    script: inNetwork(`"$NODE" --eval "$RESET"`),
    without: "no connections that are reset",
  },
  clocks: { tools: ["libfaketimeMT.so.1"], needsRoot: false, script: "true", without: "no clock jumps" },
};

/** Returns what can be done here. Says one line for each reason why something cannot: the reason, and the troubles that are left out. */
export function findAbilities(
  say: (line: string) => void,
  { isRoot = process.getuid?.() === 0, env = process.env } = {},
): Set<Ability> {
  const found = new Set<Ability>();
  const lacking = new Map<string, string[]>();
  for (const [ability, { tools, needsRoot, script, without }] of Object.entries(TRIES) as [Ability, Try][]) {
    const why = (needsRoot && !isRoot && "not root") || missingTools(tools, env.PATH) || refusal(script, env);
    if (why) lacking.set(why, [...(lacking.get(why) ?? []), without]);
    else found.add(ability);
  }
  for (const [why, without] of lacking) say(`${why}: ${without.join(", ")}`);
  return found;
}

/** Returns the last line of what a script printed before it failed, or undefined if it did not fail. */
function refusal(script: string, env: NodeJS.ProcessEnv): string | undefined {
  const { status, stderr, error } = spawnSync("/bin/sh", ["-c", script], {
    ...{ encoding: "utf8", timeout: 20_000, stdio: ["ignore", "ignore", "pipe"] },
    env: { ...env, NODE: process.execPath, RESET },
  });
  return status === 0 ? undefined : stderr?.trim().split("\n").at(-1) || error?.message || `status ${status}`;
}
