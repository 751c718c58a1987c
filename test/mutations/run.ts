/** Tries one mutation in a copy of the project. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutation, mutate, problemOf } from "./list.ts";

export interface RunOptions {
  /** Limit for one test file, because a mutation can cause an endless loop. */
  fileSeconds: number;
  /** Aborts running tests. */
  signal?: AbortSignal;
}

/** The result of a test file. */
export interface TestRun {
  status: "passed" | "failed" | "timed out";
  /** The first test that failed. */
  failed?: string | undefined;
  skipped: number;
}

export const STATUSES = ["killed", "killed by timeout", "survived", "text gone"] as const;

export interface MutationResult {
  mutation: Mutation;
  /** Killed by timeout: a test file ran too long before any test failed. Text gone: nothing was tried. */
  status: (typeof STATUSES)[number];
  /** The failed test, or the reason why none could run. */
  detail: string;
  seconds: number;
}

/** Runs one test file in the folder `root`. */
export async function runTests(root: string, file: string, { fileSeconds, signal }: RunOptions): Promise<TestRun> {
  signal?.throwIfAborted();
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  // A process group of its own, so that all its processes can be ended.
  const child = spawn(process.execPath, ["--test", "--test-reporter=tap", file], {
    ...{ cwd: root, env, detached: true },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const end = () => process.kill(-child.pid!, "SIGKILL");
  signal?.addEventListener("abort", end);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end();
  }, fileSeconds * 1000);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const exitCode = await new Promise<number | null>((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  signal?.removeEventListener("abort", end);
  signal?.throwIfAborted();
  // In TAP, tests precede the suites that contain them.
  const failed = /^ *not ok \d+ - (.*?)(?<!# (?:TODO|SKIP).*)$/m.exec(output)?.[1];
  const skipped = Number(/^# skipped (\d+)$/m.exec(output)?.[1] ?? 0);
  if (late && failed === undefined) return { status: "timed out", skipped };
  return { status: late || exitCode !== 0 ? "failed" : "passed", failed, skipped };
}

/** Applies the mutation to the copy `root`, runs its tests up to the first file that fails, and restores the text. */
export async function tryMutation(root: string, mutation: Mutation, options: RunOptions): Promise<MutationResult> {
  const begun = performance.now();
  const outcome = (status: MutationResult["status"], detail: string): MutationResult => {
    return { mutation, status, detail, seconds: (performance.now() - begun) / 1000 };
  };
  const problem = problemOf(mutation, root);
  if (problem !== undefined) return outcome("text gone", problem);
  const path = join(root, mutation.file);
  const source = readFileSync(path, "utf8");
  let skipped = 0;
  try {
    writeFileSync(path, mutate(source, mutation)!);
    for (const file of mutation.tests) {
      const run = await runTests(root, file, options);
      if (run.status === "failed") return outcome("killed", `${file}: ${run.failed ?? "it did not end well"}`);
      if (run.status === "timed out")
        return outcome("killed by timeout", `${file} took more than ${options.fileSeconds} s`);
      skipped += run.skipped;
    }
  } finally {
    writeFileSync(path, source);
  }
  const passed = `${mutation.tests.join(", ")} passed${skipped > 0 ? `, ${skipped} tests were skipped` : ""}`;
  return outcome("survived", `${passed}. ${mutation.seen}`);
}
