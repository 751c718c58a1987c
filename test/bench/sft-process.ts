/** `longrun sft` as a process that runs only while a step is asked for. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

export interface SftStep {
  loss: number;
  /** TRL's answers have all tokens so far, prompts included. */
  tokens?: number;
  /** Of the step; the first includes the start. */
  cpuSeconds: number;
  seconds: number;
}

const SFT = path.join(import.meta.dirname, "../../learner/commands/sft-command.ts");
/** Linux counts processor time in these parts of a second (sysconf(_SC_CLK_TCK)). */
const TICKS = 100;

export class SftProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #cpuSeconds = 0;

  /** @param args of `longrun sft` */
  constructor(args: string[]) {
    const given = [SFT, "--json", ...args];
    this.#child = spawn(process.execPath, given, { stdio: ["ignore", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
    this.#child.kill("SIGSTOP");
    // a stopped process would stay
    process.once("exit", () => this.close());
  }

  /** Lets it run until it has taken a step. @throws Error if it ends before */
  async step(): Promise<SftStep> {
    const began = performance.now();
    this.#child.kill("SIGCONT");
    while (true) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error("longrun sft ended without a step");
      const line = JSON.parse(value) as { kind: string; loss: number };
      if (line.kind !== "step") continue;
      this.#child.kill("SIGSTOP");
      const before = this.#cpuSeconds;
      this.#cpuSeconds = cpuSecondsOf(this.#child.pid!);
      const seconds = (performance.now() - began) / 1000;
      return { loss: line.loss, cpuSeconds: this.#cpuSeconds - before, seconds };
    }
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Returns user and system time of a process and its threads. */
function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // the name, in brackets, may contain spaces; utime and stime are fields 14 and 15
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
