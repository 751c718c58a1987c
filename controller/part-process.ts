/** Runs a process of another part once, from start to end. `local/process.ts` runs long-lived ones. */
import { type ChildProcess, spawn } from "node:child_process";
import { ControllerError } from "./errors.ts";

export interface PartResult {
  exitStatus: number;
  stdout: string;
  stderr: string;
}

export interface PartOptions {
  stdin?: string;
  env?: NodeJS.ProcessEnv;
  /** Ends the process when aborted: SIGTERM, and SIGKILL after `KILL_AFTER_SECONDS`. */
  signal?: AbortSignal | undefined;
  /** Called with each line on stderr. */
  onStderrLine?: (line: string) => void;
}

/** Time for a process to clean up before it is killed. */
const KILL_AFTER_SECONDS = 5;

/** Runs `node file args…` and collects its output. @throws ControllerError `interrupted` when aborted */
export async function runPart(file: string, args: string[], options: PartOptions = {}): Promise<PartResult> {
  options.signal?.throwIfAborted();
  // A process group of its own: Ctrl-C reaches this process alone, which then ends the group, including grandchildren. The IPC channel
  // tells the child when this process has ended.
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ["pipe", "pipe", "pipe", "ipc"],
    detached: true,
    ...(options.env && { env: options.env }),
  });
  const result: PartResult = { exitStatus: 1, stdout: "", stderr: "" };
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    result.stdout += text;
  });
  let line = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    result.stderr += text;
    const lines = (line + text).split(/[\r\n]/);
    line = lines.pop() ?? "";
    for (const complete of lines) if (complete.trim() !== "") options.onStderrLine?.(complete);
  });
  // A process may end without reading its input; its exit status decides.
  child.stdin!.on("error", () => {});
  child.stdin!.end(options.stdin ?? "");

  const stop = endWith(child, options.signal);
  try {
    result.exitStatus = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status) => resolve(status ?? 1));
    });
  } finally {
    stop();
  }
  options.signal?.throwIfAborted();
  return result;
}

/**
 * Runs a part that answers on standard output.
 *
 * @returns the last JSON line of its standard output
 * @throws ControllerError with the part's last line on stderr, `input` if it exited with 2
 */
export async function askPart<Answer>(file: string, args: string[], options: PartOptions = {}): Promise<Answer> {
  const { exitStatus, stdout, stderr } = await runPart(file, args, options);
  if (exitStatus !== 0) {
    const said = lastLine(stderr) ?? `${file} ended with status ${exitStatus} without a message`;
    throw new ControllerError(exitStatus === 2 ? "input" : "failed", said);
  }
  const answer = lastLine(stdout);
  try {
    return JSON.parse(answer ?? "") as Answer;
  } catch (cause) {
    throw new ControllerError("failed", `${file} did not answer in JSON but "${answer ?? ""}"`, { cause });
  }
}

/** Gives the terminal to a part until it ends. @returns its exit status */
export async function becomePart(file: string, args: string[]): Promise<number> {
  const child = spawn(process.execPath, [file, ...args], { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  // The terminal sends Ctrl-C to both processes; this one waits for the other to handle it.
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  const ignore = (): void => {};
  process.on("SIGINT", ignore).on("SIGTERM", forward).on("SIGHUP", forward);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status, signal) => resolve(signal === "SIGINT" ? 130 : (status ?? 1)));
  });
}

function endWith(child: ChildProcess, signal: AbortSignal | undefined): () => void {
  let timer: NodeJS.Timeout | undefined;
  const end = (name: NodeJS.Signals): void => {
    try {
      process.kill(-child.pid!, name);
    } catch {
      // The group has ended.
    }
  };
  const onAbort = (): void => {
    end("SIGTERM");
    timer = setTimeout(() => end("SIGKILL"), KILL_AFTER_SECONDS * 1000);
  };
  const onExit = (): void => end("SIGKILL");
  signal?.addEventListener("abort", onAbort);
  process.on("exit", onExit);
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    process.off("exit", onExit);
  };
}

function lastLine(text: string): string | undefined {
  return text.trimEnd().split("\n").at(-1) || undefined;
}
