/** Runs commands in a container over the API server, like `kubectl exec`, for output alone. */
import { PassThrough, type Writable } from "node:stream";
import { Exec, type V1Status } from "@kubernetes/client-node";
import { ControllerError } from "../../errors.ts";
import type { Cluster } from "../cluster.ts";

export interface Container {
  namespace: string;
  pod: string;
  container: string;
}

/** Most characters of a command's stderr in an error message. */
const STDERR_CHARACTERS = 500;

/**
 * Runs `command` and writes its output to `output`, as fast as that accepts it, because weights are larger than memory.
 *
 * @throws ControllerError `failed` if it cannot be run, if the connection breaks, or if its exit status is not 0
 */
export async function execute(
  { config, signal }: Pick<Cluster, "config" | "signal">,
  at: Container,
  command: string[],
  output: Writable,
): Promise<void> {
  const { namespace, pod, container } = at;
  const failed = (why: string, cause?: unknown) =>
    new ControllerError("failed", `${command[0]} in pod ${namespace}/${pod}: ${why}`, { cause });
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  let said = "";
  stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-STDERR_CHARACTERS);
  });
  const ended = Promise.withResolvers<V1Status>();
  ended.promise.catch(() => {}); // the connection may break before the promise is awaited
  const socket = await new Exec(config)
    .exec(namespace, pod, container, command, stdout, stderr, null, false, (status) => ended.resolve(status))
    .catch((error: unknown) => {
      throw failed(describe(error), error);
    });
  socket.onclose = () => ended.reject(failed("the connection ended before the command did"));
  socket.onerror = ({ message }: { message: string }) => ended.reject(failed(message));
  // The library writes whatever arrives, so a slow reader must pause the socket itself.
  const pausable = socket as unknown as { pause(): void; resume(): void };
  output.on("error", () => {});
  stdout.on("data", (chunk: Buffer) => {
    if (!output.write(chunk)) {
      pausable.pause();
      output.once("drain", () => pausable.resume());
    }
  });
  const interrupt = () => ended.reject(signal.reason);
  signal.addEventListener("abort", interrupt);
  if (signal.aborted) interrupt();
  const drained = new Promise<void>((resolve) => stdout.once("end", resolve));
  try {
    const status = await ended.promise;
    if (status.status !== "Success") {
      const last = said.trim().split("\n").at(-1);
      throw failed(last || status.message || "it failed");
    }
    await drained;
  } finally {
    signal.removeEventListener("abort", interrupt);
    socket.close();
  }
}

/** @returns the command's output. @throws as `execute` */
export async function outputOf(
  cluster: Pick<Cluster, "config" | "signal">,
  at: Container,
  command: string[],
): Promise<Buffer> {
  const output = new PassThrough();
  const chunks: Buffer[] = [];
  output.on("data", (chunk: Buffer) => chunks.push(chunk));
  await execute(cluster, at, command, output);
  output.end();
  await new Promise((resolve) => output.once("close", resolve));
  return Buffer.concat(chunks);
}

/** The library reports errors as WebSocket events or as errors. */
function describe(error: unknown): string {
  const { message, error: inner } = error as { message?: string; error?: Error };
  const text = message || inner?.message || String(error);
  return /\b403\b/.test(text) ? `${text}; you need the right to create pods/exec` : text;
}
