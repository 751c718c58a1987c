/**
 * `npm test` loads this file into the process of each test file. Node limits the time of a test only, and waits for two things for ever:
 *
 * - a process that a server or a child keeps alive after the tests: it is ended FILE_SECONDS after its start, and what kept it is named
 * - a child that outlives the process and still has its output: it is killed when the process ends, and named
 */
import { readdirSync, readFileSync, readlinkSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** Limit for the process in seconds: `--import=file-limit.ts?seconds=N`. */
const FILE_SECONDS = Number(new URL(import.meta.url).searchParams.get("seconds"));

const say = (text: string) => writeSync(2, `${process.argv[1]}: ${text}\n`);
/** Returns what `read` returns, or "" for a process that is gone or another user's. */
function ofProcess(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
const commandOf = (pid: string | number) =>
  ofProcess(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim());

/** A handle in https://nodejs.org/api/report.html */
interface Handle {
  type: string;
  is_active: boolean;
  is_referenced: boolean;
  pid?: number;
  fd?: number;
  localEndpoint?: Endpoint;
  remoteEndpoint?: Endpoint;
}
type Endpoint = { host: string; port: number } | string | null;

const addressOf = (end?: Endpoint) => (end && typeof end === "object" ? `${end.host}:${end.port}` : (end ?? ""));

/** Returns the kinds of everything that keeps this process alive, then the addresses of sockets and the commands of children. */
function active(): string {
  const report = Object.assign(process.report, { excludeNetwork: true }).getReport() as { libuv: Handle[] };
  const handles = report.libuv.filter(({ is_active, is_referenced, fd }) => is_active && is_referenced && !(fd! <= 2));
  const details = handles.map(({ type, pid, localEndpoint, remoteEndpoint }) =>
    [type, addressOf(localEndpoint), addressOf(remoteEndpoint), pid ? `${pid} ${commandOf(pid)}` : ""].filter(Boolean),
  );
  return [process.getActiveResourcesInfo().join(", "), ...details.map((words) => words.join(" "))].join("; ");
}

/** Kills the processes that still have this one's output, which are children of the tests. */
function killWriters(): void {
  const outputs = [1, 2].map((fd) => ofProcess(() => readlinkSync(`/proc/self/fd/${fd}`)));
  const own = outputs.filter((path) => /^(pipe|socket):/.test(path));
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid))) {
    if (![1, 2].some((fd) => own.includes(ofProcess(() => readlinkSync(`/proc/${pid}/fd/${fd}`))))) continue;
    say(`the tests left process ${pid}: ${commandOf(pid)}`);
    ofProcess(() => String(process.kill(Number(pid), "SIGKILL")));
  }
}

// Node.js hands its options and the environment on to processes that the tests start.
if (isMainThread && process.env.LONGRUN_TEST_PROCESS === undefined) {
  process.env.LONGRUN_TEST_PROCESS = String(process.pid);
  setTimeout(() => {
    say(`did not end within ${FILE_SECONDS} s; still active: ${active()}`);
    process.exit(1);
  }, FILE_SECONDS * 1000).unref();
  // Only Node's runner gives a test file an output of its own.
  if (process.platform === "linux" && process.env.NODE_TEST_CONTEXT !== undefined) process.on("exit", killWriters);
}
