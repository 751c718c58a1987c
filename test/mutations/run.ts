/** Tries one mutation in a copy of the project. */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutation, mutate, problemOf } from "./list.ts";

export interface RunOptions {
  /** Of one test file. A file that takes longer is ended: a mutation can make an endless loop. */
  fileSeconds: number;
  /** Ends what runs. */
  signal?: AbortSignal;
}

/** What a test file came to. */
export interface TestRun {
  status: "passed" | "failed" | "timed out";
  /** The first test that failed. */
  failed?: string | undefined;
  skipped: number;
}

export const STATUSES = ["killed", "killed by timeout", "survived", "text gone"] as const;

export interface MutationResult {
  mutation: Mutation;
  /** Killed by timeout: no test failed before a test file had run for too long. Text gone: nothing was tried. */
  status: (typeof STATUSES)[number];
  /** Which test failed, or why none could. */
  detail: string;
  seconds: number;
}

/** Runs one test file in the folder `root`. */
export async function runTests(root: string, file: string, { fileSeconds, signal }: RunOptions): Promise<TestRun> {
  signal?.throwIfAborted();
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  // A process group of its own, so that it can be ended with all that it started.
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
  // Tests stand before the suites that they are in.
  const failed = /^ *not ok \d+ - (.*?)(?<!# (?:TODO|SKIP).*)$/m.exec(output)?.[1];
  const skipped = Number(/^# skipped (\d+)$/m.exec(output)?.[1] ?? 0);
  if (late && failed === undefined) return { status: "timed out", skipped };
  return { status: late || exitCode !== 0 ? "failed" : "passed", failed, skipped };
}

/** Puts the mutation into the copy `root`, runs its tests up to the first file that fails, and puts the right text back. */
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
