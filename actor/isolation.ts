/** Finds the isolation level that this machine supports: runs a program that attacks the sandbox. */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ISOLATION_LEVELS, type IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import { execute } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

/** Prints a line for each forbidden action that succeeded, then `probed`. `CANARY` is replaced. */
const PROBE = `
import os, socket
def tried(what, action):
    try: action()
    except OSError: return
    print("broken: " + what)
def signal_parent():
    if os.getppid() == 0: raise OSError("the parent is out of sight")
    os.kill(os.getppid(), 0)
tried("a file of the supervisor can be read", lambda: open(CANARY).close())
tried("a file can be written beside scratch", lambda: open(CANARY + ".new", "w").close())
tried("the supervisor's processes can be signalled", signal_parent)
tried("the process list of the machine can be read", lambda: open("/proc/%d/environ" % SUPERVISOR).close())
tried("sockets can be made", socket.socket)
tried("namespaces can be made", lambda: os.unshare(0x10000000) if hasattr(os, "unshare") else open(CANARY).close())
import numpy
open("submission.csv", "w").write(str(int(numpy.ones(3).sum())))
print("probed")
`;

type IsolationOptions = SandboxOptions & {
  /** Use exactly this level. */
  level?: IsolationLevel;
  /** Run without isolation if no level works. */
  allowNoIsolation?: boolean;
};

interface ProbedSandbox {
  sandbox: Sandbox;
  /** {level: why it does not work on this machine}, for the levels that were tried. */
  refused: Partial<Record<IsolationLevel, string>>;
}

/** Starts a sandbox at the strongest level that works. Throws ActorError `isolation` with the reasons if none does. */
export async function startIsolated(options: IsolationOptions): Promise<ProbedSandbox> {
  const { level: only, allowNoIsolation, ...rest } = options;
  const refused: ProbedSandbox["refused"] = {};
  if (only === "none" && !allowNoIsolation)
    throw new ActorError("isolation", "isolation: running without it needs --allow-no-isolation");
  const levels = only ? [only] : ISOLATION_LEVELS.filter((level) => level !== "none" || allowNoIsolation);
  for (const level of levels) {
    try {
      const sandbox = await Sandbox.start({ ...rest, level });
      const broken = level === "none" ? undefined : await attack(sandbox, options).catch(tellWhy);
      if (broken === undefined) return { sandbox, refused };
      refused[level] = broken;
      await sandbox.stop();
    } catch (error) {
      if (!(error instanceof ActorError) || error.code !== "isolation") throw error;
      refused[level] = error.message;
    }
  }
  const reasons = Object.entries(refused).map(([level, reason]) => `${level}: ${reason}`);
  throw new ActorError(
    "isolation",
    `isolation: no level works here (${reasons.join("; ")}). Allow unprivileged user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0), or use a kernel >= 5.13 with Landlock; --allow-no-isolation runs programs without any`,
  );
}

/** For a probe that could not be prepared, for example on a full or read-only disk. */
const tellWhy = (error: Error) => `it cannot be tried: ${error.message}`;

/** Returns undefined if the sandbox resisted, else the actions that succeeded. */
async function attack(sandbox: Sandbox, options: SandboxOptions): Promise<string | undefined> {
  // A secret that only the sandbox protects: beside the sandbox's space, or in the volume that actor and sandbox share.
  const name = `probe-${randomBytes(4).toString("hex")}`;
  const shared = "socket" in options;
  const directory = shared ? join(dirname(options.socket), name) : `${options.space}-${name}`;
  const directoryInside = shared ? join(sandbox.info.directory ?? "", name) : directory;
  await mkdir(directory);
  try {
    await chmod(directory, shared ? 0o777 : 0o755); // a program may be another user there: only the sandbox must stop it
    await writeFile(join(directory, "canary"), "secret", { mode: 0o644 });
    const canary = JSON.stringify(join(directoryInside, "canary"));
    const program = PROBE.replaceAll("CANARY", canary).replace("SUPERVISOR", String(shared ? 1 : process.pid));
    const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 30 };
    const task = "";
    const result = await execute(sandbox, { task, program: Buffer.from(program), nonce: "", limits, seed: 0 });
    const output = result.terminalOutput.toString();
    if (result.outcome === "completed" && output === "probed\n" && result.submission?.toString() === "3") return;
    const broken = output.split("\n").filter((line) => line.startsWith("broken: "));
    if (broken.length > 0) return broken.map((line) => line.slice("broken: ".length)).join(", ");
    return `the probe ended as ${result.outcome} ${result.detail}: ${output.trim().split("\n").at(-1) ?? ""}`.trim();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
