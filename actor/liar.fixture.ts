/** Zygotes that misbehave, and the frames that they send. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { after, type TestContext } from "node:test";
import type { Limits } from "../proto/execution.ts";
import { type ExecutionResult, execute } from "./execution.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { type Deadlines, Sandbox, type SandboxOptions } from "./sandbox.ts";

export const MEBIBYTE = 1 << 20;

export const folder = mkdtempSync(join(tmpdir(), "lr-frames-"));
after(() => rmSync(folder, { recursive: true }));

export const HELLO = { level: "landlock", landlockAbi: 7, residentBytes: 1, versions: { python: "3" } };
export const END = { status: 0, signal: 0, cpuSeconds: 0, peakMemoryBytes: 10, killedFor: null, report: "" };
export const NONE = { bytes: 0, refused: null, present: false };
export const frame = (kind: string, payload: unknown = "") =>
  encodeFrame(kind, typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload));
export const announced = (bytes: unknown) => frame("E", { bytes, refused: null, present: true });
export const [S, X, E, F] = [frame("S"), frame("X", END), frame("E", NONE), frame("F")];

export const LIMITS = {
  ...DEFAULT_LIMITS,
  timeoutSeconds: 0.1,
  outputBytes: 1000,
  keptOutputBytes: 100,
  submissionBytes: 1000,
};
const DEADLINES: Deadlines = { programStartSeconds: 0.1, killSeconds: 0.1, submissionSeconds: 0.1 };
export const REQUEST = { task: "t", program: Buffer.from("pass"), nonce: "", limits: LIMITS, seed: 0 };
/** For a program that ends: on a busy machine, 0.1 s can pass between two of its frames. */
export const PATIENT_REQUEST = { ...REQUEST, limits: { ...LIMITS, timeoutSeconds: 60 } };
export const PATIENT: Deadlines = { programStartSeconds: 60, killSeconds: 60, submissionSeconds: 60 };

/** The action of a faulty zygote when a program arrives. */
export type Lie = (connection: Socket) => unknown;

/** A zygote that misbehaves with its first program and answers the others honestly. */
export class Liar {
  readonly socket = join(folder, `${Math.random()}.sock`);
  /** The kinds of frames that it received. */
  heard = "";
  readonly #server: Server;

  constructor(hello: Buffer | Lie, lie: Lie) {
    this.#server = createServer((connection) => {
      const reader = new FrameReader();
      let programs = 0;
      connection
        .on("error", () => {})
        .on("data", (chunk) => {
          for (const { kind } of this.#frames(reader, chunk)) {
            this.heard += kind;
            if (kind === "C") typeof hello === "function" ? hello(connection) : connection.write(hello);
            if (kind === "R") programs++ === 0 ? lie(connection) : connection.write(Buffer.concat([S, X, E, F]));
          }
        });
    }).listen(this.socket);
  }

  /** Skips the bytes of programs, which are no frames. */
  *#frames(reader: FrameReader, chunk: Buffer) {
    const program = chunk.indexOf(REQUEST.program);
    yield* reader.push(program === -1 ? chunk : chunk.subarray(0, program));
  }

  start(more: Partial<SandboxOptions> = {}): Promise<Sandbox> {
    return Sandbox.start({
      ...{ socket: this.socket, inputs: {}, level: "landlock" as const, startSeconds: 5, deadlines: DEADLINES },
      ...more,
    });
  }

  close(): void {
    this.#server.close();
  }
}

/** Starts a sandbox at a zygote. Both are closed after the test, whether it passes or fails. */
export async function startFor(t: TestContext, liar: Liar, more: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  t.after(() => liar.close());
  const sandbox = await liar.start(more);
  t.after(() => sandbox.stop());
  return sandbox;
}

/** Returns the result of a program in a sandbox whose zygote misbehaves. */
export async function lied(lie: Lie | Buffer[], request = REQUEST, deadlines: Partial<Deadlines> = {}) {
  const write = (connection: Socket) => connection.write(Buffer.concat(lie as Buffer[]));
  const liar = new Liar(frame("H", HELLO), Array.isArray(lie) ? write : lie);
  const sandbox = await liar.start({ deadlines: { ...DEADLINES, ...deadlines } });
  const startedAt = performance.now();
  try {
    const result = await execute(sandbox, request);
    const seconds = (performance.now() - startedAt) / 1000;
    assertBounded(result, seconds, request.limits);
    return { result, seconds, liar, sandbox, alive: sandbox.alive };
  } finally {
    await sandbox.stop();
    liar.close();
  }
}

function assertBounded(result: ExecutionResult, seconds: number, limits: Limits): void {
  const { exitStatus, signal, durationSeconds, cpuSeconds, peakMemoryBytes } = result;
  assert.ok(Number.isInteger(exitStatus) && exitStatus >= 0 && exitStatus <= 255, `status ${exitStatus}`);
  assert.ok(Number.isInteger(signal) && signal >= 0 && signal <= 64, `signal ${signal}`);
  assert.ok(durationSeconds >= 0 && durationSeconds <= seconds, `${durationSeconds} of ${seconds} s`);
  const processors = Math.max(cpus().length, availableParallelism());
  assert.ok(cpuSeconds >= 0 && cpuSeconds <= seconds * processors, `${cpuSeconds} processor seconds`);
  assert.ok(peakMemoryBytes >= 0 && peakMemoryBytes <= totalmem(), `${peakMemoryBytes} bytes`);
  assert.match(result.detail, /^[^\p{Cc}]{0,700}$/u);
  assert.ok(result.terminalOutput.length <= 2 * limits.keptOutputBytes + 100);
  assert.ok((result.submission?.length ?? 0) <= limits.submissionBytes);
  assert.ok((result.submissionRefused?.length ?? 0) <= 200);
}

export const deep = "[".repeat(MEBIBYTE - 10);
export const nested = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
