/** Programs that a test starts and that end with the test, however it ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";

export interface Part {
  pid: number;
  /** Returns how it ended and its last lines, or undefined while it runs. */
  ended(): string | undefined;
  /** Returns the last lines of its log. */
  lastLines(): string;
  stop(): Promise<void>;
}

/** @param onEnd is called when it ends without `stop()` */
export function startPart(path: string, args: string[], logFile: string, onEnd = () => {}): Part {
  const log = openSync(logFile, "a");
  // In a process group of its own: an interrupt from the keyboard reaches only the test, which then stops its parts in order.
  const child = spawn(path, args, { stdio: ["ignore", log, log], detached: true });
  closeSync(log);
  let failure: Error | undefined;
  let stopping = false;
  child.on("error", (error) => (failure = error));
  child.once("exit", () => !stopping && onEnd());
  // A test that forgets to stop it can still end; the guard cleans up.
  child.unref();
  const running = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  const lastLines = () => readFileSync(logFile, "utf8").trim().split("\n").slice(-5).join("\n");
  return {
    pid: child.pid ?? 0,
    ended() {
      if (running()) return undefined;
      return `${path} ended with ${failure?.message ?? child.signalCode ?? child.exitCode}:\n${lastLines()}`;
    },
    lastLines,
    async stop() {
      stopping = true;
      if (!running()) return;
      child.ref();
      const exited = once(child, "exit");
      // Nobody needs its data any more.
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/**
 * Starts a shell that waits for the end of its input, which comes when this process ends in any way, and then kills the registered
 * processes and removes `folder`.
 */
export function startGuard(folder: string) {
  const script = 'pids=; while read -r pid; do pids="$pids $pid"; done; kill -KILL $pids 2>/dev/null; rm -rf "$1"';
  const guard = spawn("sh", ["-c", script, "sh", folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  (guard.stdin as Socket).unref();
  return {
    watch: (pid: number) => guard.stdin.write(`${pid}\n`),
    stop: () => guard.kill("SIGKILL"),
  };
}

/** Returns different ports that are free on the loopback address. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  // All are held until all are known, so that they differ.
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
