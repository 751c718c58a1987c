/**
 * A part of `npm run bench gpu`, in a process of its own: a crash of ONNX Runtime or CUDA only ends that process. A part that exceeds its
 * budget is ended. In both cases the findings so far are kept.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Device } from "../../../learner/engine/runtime/device.ts";
import type { BenchResult, Goal } from "../result.ts";

/** Each part's budget, seconds, from the start of its process. */
export const BUDGET_SECONDS = { parity: 140, counts: 40, decode: 130, speed: 340, memory: 140 };
/** Budget of each part with small shapes, which say nothing about speed. */
export const SMALL_BUDGET_SECONDS = 300;
export type PartName = keyof typeof BUDGET_SECONDS;

/** Options of a part. */
export interface PartOptions {
  device: Device;
  /** The device's memory that other processes use. */
  usedBytes: number;
  /** Use shapes that take seconds on a CPU. */
  small: boolean;
  /** Folder for model files; empty, and removed afterwards. */
  folder: string;
}

/** New findings of a part. */
export interface Finding {
  rows?: BenchResult["rows"];
  goals?: Goal[];
  /** Lines about the measurement, or about omissions. */
  notes?: string[];
  /** Single measurements. */
  raw?: unknown;
}

export type Part = (options: PartOptions) => AsyncIterable<Finding>;

/** Descriptor for findings, one line of JSON each, because ONNX Runtime may write to stdout. */
export const FINDINGS_FD = 3;

/** Most lines of a failed part's stderr that are shown. */
const STDERR_LINES = 8;

/** How a part's process ended. */
export interface Ending {
  /** E.g. `after 12 s by itself`, or `ended by SIGSEGV after 3 s: …`. */
  text: string;
  whole: boolean;
}

/**
 * Runs a part to its end, or to the end of its budget.
 *
 * @returns every finding, and how the process ended
 */
export async function runPart(
  name: PartName,
  options: Omit<PartOptions, "folder">,
  budgetSeconds: number,
): Promise<{ findings: Finding[]; ending: Ending }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), `longrun-gpu-${name}-`));
  const start = performance.now();
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, "child.ts"), name, JSON.stringify({ ...options, folder })],
    { stdio: ["ignore", "inherit", "pipe", "pipe"], detached: true }, // a process group, so that PyTorch's process ends with it
  );
  const end = () => killGroup(child);
  const interrupted = () => process.exit(130); // this ends the part, too
  process.once("exit", end);
  process.once("SIGINT", interrupted);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end();
  }, budgetSeconds * 1000);
  try {
    const findings: Finding[] = [];
    const errors: string[] = [];
    const exit = new Promise<string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => {
        end(); // ends PyTorch's process
        resolve(signal ? `ended by ${signal}` : code ? `exit status ${code}` : "");
      });
    });
    const [fault] = await Promise.all([
      exit,
      lines(child.stdio[FINDINGS_FD] as Readable, (line) => findings.push(JSON.parse(line))),
      lines(child.stderr!, (line) => {
        process.stderr.write(`${line}\n`);
        errors.push(line);
      }),
    ]);
    const seconds = Math.round((performance.now() - start) / 1000);
    if (late) return { findings, ending: { text: `ended at its budget of ${budgetSeconds} s`, whole: false } };
    if (fault === "") return { findings, ending: { text: `${seconds} s`, whole: true } };
    const said = errors.slice(-STDERR_LINES).join(" | ");
    return { findings, ending: { text: `${fault} after ${seconds} s${said && `: ${said}`}`, whole: false } };
  } finally {
    clearTimeout(timer);
    end();
    process.off("exit", end);
    process.off("SIGINT", interrupted);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Ends the process and its children. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // it has ended
  }
}

async function lines(stream: Readable, each: (line: string) => void): Promise<void> {
  for await (const line of createInterface({ input: stream })) each(line);
}

/**
 * Yields the findings of one case of a part. If it fails, the other cases continue.
 *
 * @param what name of the case in goals
 */
export async function* findingsOf(what: string, findings: () => AsyncIterable<Finding>): AsyncGenerator<Finding> {
  try {
    yield* findings();
  } catch (error) {
    const { message, stack } = error as Error;
    process.stderr.write(`${what}: ${stack}\n`);
    yield { goals: [{ what, goal: "runs", measured: message, met: false }] };
  }
}
