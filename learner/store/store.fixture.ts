/** Samples, results and store files for tests. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewSample, ReportedResult } from "./types.ts";

export function newSample(id: string, change: Partial<NewSample> = {}): NewSample {
  return {
    id,
    purpose: "training",
    iteration: 0,
    lineage: 1,
    task: "diamonds",
    kind: "scratch",
    promptTokens: Int32Array.of(1, 2),
    responseTokens: Int32Array.of(3, 4, 5),
    behaviourLogProbs: Float32Array.of(-0.5, -1.25, -2),
    solution: "A plan.\n```python\nprint(1)\n```",
    plan: "A plan.",
    program: "print(1)\n",
    instrumented: 'print("@@NONCE@@:loaded data")\nprint(1)\n',
    insertedMarkers: ["loaded data", "trained model"],
    instrumenter: "Syntax",
    executionSeed: 7,
    state: "queued",
    ...change,
  };
}

export function newResult(change: Partial<ReportedResult> = {}): ReportedResult {
  return {
    outcome: "completed",
    exitStatus: 0,
    signal: 0,
    durationSeconds: 1.5,
    cpuSeconds: 1.25,
    peakMemoryBytes: 1e8,
    markers: [{ name: "loaded data", value: "", atSeconds: 0.25 }],
    forgedMarkers: 0,
    imitatedMarkers: 0,
    terminalOutput: "done\n",
    outputBytes: 5,
    submissionRefused: "",
    detail: "",
    isolationLevel: "namespaces",
    ...change,
  };
}

/** Makes a folder that is deleted when the process ends; in memory if possible, because every commit is an fsync. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "longrun-store-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
