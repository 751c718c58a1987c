/** A task with one small input, and programs that run in its sandbox. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Limits } from "../proto/execution.ts";
import { type ExecutionResult, execute } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import type { Sandbox } from "./sandbox.ts";

export const environment = (await ensurePythonEnvironment()).directory;
export const folder = mkdtempSync(join(tmpdir(), "lr-actor-"));
chmodSync(folder, 0o755);
writeFileSync(join(folder, "train.csv"), "id,x\n1,2\n");
after(() => rmSync(folder, { recursive: true, force: true }));

export const inputs = { small: folder };
export const python = (lines: string) => Buffer.from(lines);
export const SLEEPER = "import time\nopen('left', 'w').write('x')\nprint('up')\ntime.sleep(600)";

export function run(sandbox: Sandbox, program: string, limits: Partial<Limits> = {}): Promise<ExecutionResult> {
  const request = { task: "small", program: python(program), nonce: "", seed: 0 };
  return execute(sandbox, { ...request, limits: { ...DEFAULT_LIMITS, timeoutSeconds: 30, ...limits } });
}

/** Resolves once a program of the sandbox has printed. */
export async function runs(sandbox: Sandbox, program: string): Promise<{ result: Promise<unknown> }> {
  const printed = Promise.withResolvers<void>();
  const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 600 };
  const request = { task: "small", program: python(program), limits, seed: 0 };
  const result = sandbox.run(request, { onOutput: () => printed.resolve() });
  await Promise.race([printed.promise, result]);
  return { result: result.catch((error: Error) => error) };
}

export async function until(what: string, condition: () => boolean, seconds = 10): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, `not within ${seconds} s: ${what}`);
    await sleep(10);
  }
}
