/** Starts `longrun serve` on the policy of the quickstart. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { readTokenizer } from "../../learner/engine/index.ts";

const path = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
export const COMMAND = path("learner/commands/serve-command.ts");
export const CLI = path("controller/cli.ts");
export const POLICY = path("manifests/quickstart/policy");
export const tokenizer = readTokenizer(POLICY);

export const folder = mkdtempSync(join(tmpdir(), "longrun-serve-"));
const running: ChildProcess[] = [];
after(() => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the command and waits for its URL. */
export async function serve(program: string[], args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [...program, ...args, "--port", "0", "--threads", "1", "--device", "cpu"], {
    env: { ...process.env, LONGRUN_API_KEY: "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let stderr = "";
  child.stderr.on("data", (text: Buffer) => {
    stderr += text;
  });
  const lines: string[] = [];
  const ready = Promise.withResolvers<void>();
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line);
    if (lines.length === 2) ready.resolve();
  });
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([ready.promise, exited.then(([status]) => assert.fail(`status ${status}: ${stderr}`))]);
  const url = / at (http\S+\/v1):/.exec(lines[0]!)![1]!;
  return { child, url, lines, exited, stderr: () => stderr };
}

/** Runs the command to its end, with a channel to its parent as `longrun` gives it. */
export async function fails(...args: string[]): Promise<{ status: number; stderr: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: { ...process.env, LONGRUN_API_KEY: "" },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    timeout: 60_000,
  });
  let stderr = "";
  child.stderr!.on("data", (text: Buffer) => {
    stderr += text;
  });
  const [status] = (await once(child, "close")) as [number];
  return { status, stderr };
}
