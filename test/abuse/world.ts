/**
 * The targets of hostile programs: answers, a bystander process, listening sockets, and a directory with precious files. All are open to
 * any user, so that only the sandbox protects them. `check` examines all of them from outside.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IsolationLevel } from "../../proto/isolation.ts";

export const SECRET = "secret-answer-4711";
export const NONCE = "0123456789abcdef0123456789abcdef";

/** Text in a file of the neighbouring execution. */
export const NEIGHBOUR_NOTE = "neighbour-4711";
const PROGRAM_BYTES = 50_000_000;
const SANDBOX = fileURLToPath(new URL("../../actor/sandbox", import.meta.url));

export interface World {
  /** Task folder. */
  task: string;
  publicData: string;
  /** Fills this world's paths, process ids and ports into a program. */
  fill: (program: string) => string;
  /** Throws if anything was read, changed, contacted or killed. */
  check: () => void;
  close: () => void;
}

export interface WorldOptions {
  /** Directory of the Python environment. */
  environment: string;
  level: IsolationLevel;
  /** Path of the sandbox's control socket for programs, if it has one. */
  controlSocket?: string | undefined;
  /** The directory of another slot. */
  neighbour?: string;
}

export async function createWorld(options: WorldOptions): Promise<World> {
  const { environment, level, controlSocket, neighbour = "/none" } = options;
  const folder = mkdtempSync(join(tmpdir(), "longrun-abuse-"));
  chmodSync(folder, 0o755);
  const task = join(folder, "task");
  const publicData = join(task, "prepared", "public");
  const answers = join(task, "prepared", "private", "answers.csv");
  const outside = join(folder, "outside");
  for (const path of [publicData, join(answers, ".."), join(outside, "empty")]) mkdirSync(path, { recursive: true });
  const rows = Array.from({ length: 60 }, (_, index) => `${index},${Math.sin(index)},${index % 7},${index % 5}`);
  writeFileSync(join(publicData, "train.csv"), `id,a,b,target\n${rows.join("\n")}\n`);
  writeFileSync(join(publicData, "test.csv"), `id,a,b\n${rows.map((row) => row.replace(/,\d+$/, "")).join("\n")}\n`);
  writeFileSync(answers, `id,target\n1,${SECRET}\n`);
  writeFileSync(join(outside, "precious"), "precious");
  for (const path of [outside, publicData, join(outside, "precious"), join(publicData, "train.csv"), answers])
    chmodSync(path, 0o777);

  let contacts = 0;
  const onContact = () => {
    contacts++;
  };
  const tcp = createServer(onContact).listen(0, "127.0.0.1");
  const abstractName = `longrun-abuse-${process.pid}`;
  const abstract = createServer(onContact).listen(`\0${abstractName}`);
  const path = createServer(onContact).listen(join(outside, "socket"));
  const udp = createSocket("udp4").on("message", onContact).bind(0, "127.0.0.1");
  await Promise.all([tcp, abstract, path, udp].map((server) => once(server, "listening")));
  chmodSync(join(outside, "socket"), 0o777);
  const victim: ChildProcess = spawn("sleep", ["20000"], { stdio: "ignore" });
  process.env.LONGRUN_ABUSE_SECRET = SECRET;

  const values: Record<string, string> = {
    ANSWERS: answers,
    OUTSIDE: outside,
    TASK: task,
    SUPERVISOR: String(process.pid),
    VICTIM: String(victim.pid),
    TCP: String((tcp.address() as { port: number }).port),
    UDP: String(udp.address().port),
    ABSTRACT: abstractName,
    SANDBOX,
    ...systemCalls(environment, level),
    CONTROL: controlSocket ?? join(outside, "socket"),
    NEIGHBOUR: neighbour,
    NONCE,
    NUL: "\0",
  };
  const site = join(environment, "lib", readdirSync(join(environment, "lib"))[0]!, "site-packages");
  const state = () => ({
    outside: listing(outside),
    task: listing(task),
    site: readdirSync(site).sort().join(" "),
    numpy: digest(join(site, "numpy", "__init__.py")),
    limits: readFileSync(`/proc/${victim.pid}/limits`, "utf8"),
    victim: readFileSync(`/proc/${victim.pid}/stat`, "utf8").replace(/^\d+ \(sleep\) [RSD] .*/s, "alive"),
    nice: readFileSync(`/proc/${victim.pid}/stat`, "utf8").split(" ").slice(17, 19).join(" "),
    machineFiles: [
      "/abuse-was-here",
      "/etc/abuse-was-here",
      "/var/tmp/abuse-was-here",
      "/root/abuse-was-here",
      "/tmp/left-behind",
    ]
      .filter((file) => existsSync(file))
      .join(" "),
    sockets: contacts,
  });
  const before = state();
  return {
    task,
    publicData,
    fill: (program) => fillIn(program, values),
    check: () => assert.deepEqual(state(), before),
    close: () => {
      victim.kill("SIGKILL");
      for (const server of [tcp, abstract, path, udp]) server.close();
      delete process.env.LONGRUN_ABUSE_SECRET;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a program with each `@NAME@` replaced by that name's value. */
export function fillIn(program: string, values: Record<string, string>): string {
  return program.replace(/@([A-Z]+)@/g, (whole, name) => {
    if (name === "PADDING") return "x".repeat(PROGRAM_BYTES - program.length);
    return values[name] ?? whole;
  });
}

/** Returns the numbers of system calls that a program may make, at least with some arguments, and of calls that do nothing and return 0. */
export function systemCalls(environment: string, level: IsolationLevel): Record<string, string> {
  const code = `
import seccomp, system_calls
decisions = seccomp.${level === "namespaces" ? "everywhere" : "alone"}()
known = {name: decision for name, decision in decisions.items() if name in system_calls.NUMBERS}
for wanted in (lambda it: it == seccomp.ALLOW or isinstance(it, tuple), lambda it: it == seccomp.SILENT):
    print(",".join(str(system_calls.NUMBERS[name]) for name, decision in known.items() if wanted(decision)))`;
  const run = spawnSync(join(environment, "bin", "python"), ["-B", "-c", code], { cwd: SANDBOX, encoding: "utf8" });
  const [ALLOWED, SILENT] = run.stdout.trim().split("\n");
  assert.ok(ALLOWED && SILENT, run.stderr);
  return { ALLOWED, SILENT };
}

function digest(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Returns names, modes, times and contents of everything below a directory. */
function listing(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode, mtimeMs, size, nlink } = statSync(path);
      return `${path} ${mode} ${mtimeMs} ${size} ${nlink} ${entry.isFile() ? digest(path) : ""}`;
    })
    .sort();
}
