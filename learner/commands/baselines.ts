/** Runs baselines.py, one process for all tasks, because importing scikit-learn takes longer than most of its work here. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { TaskError } from "../tasks/errors.ts";
import type { Baseline } from "./generated-scores.ts";

const SCRIPT = fileURLToPath(new URL("../tasks/generate/baselines.py", import.meta.url));

export interface Asked {
  /** The task's folder. */
  folder: string;
  /** Folder for the submissions. */
  out: string;
  metric: string;
  kind: string;
  target: string;
  /** Kinds of the columns that the baselines use, by name. */
  columns: Record<string, string>;
}

export class Baselines {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #python: string;
  /** Resolves when all that it wrote has been read. */
  readonly #ended: Promise<void>;
  #said = "";

  /** @param python with the packages of the programs' environment */
  constructor(python: string) {
    this.#python = python;
    // One thread: the same sums in the same order on every machine.
    const env = { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", PYTHONDONTWRITEBYTECODE: "1" };
    this.#child = spawn(python, [SCRIPT], { stdio: ["pipe", "pipe", "pipe"], env });
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", () => resolve());
      this.#child.once("error", (error) => {
        this.#said = error.message;
        resolve();
      });
    });
    this.#child.stdin!.on("error", () => {}); // the end of its output says why
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#said = (this.#said + text).slice(-4000);
    });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  /** Returns the versions of Python and of its packages. Asked once, first. */
  async versions(): Promise<Record<string, string>> {
    return (await this.#answer()) as Record<string, string>;
  }

  /** Writes a submission for each baseline. @returns seconds of each */
  async solve(asked: Asked): Promise<Record<Baseline, number>> {
    this.#child.stdin!.write(`${JSON.stringify(asked)}\n`);
    return ((await this.#answer()) as { seconds: Record<Baseline, number> }).seconds;
  }

  /** @throws TaskError with Python's last line if it has ended */
  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (!done) return JSON.parse(value);
    await this.#ended;
    const why = this.#said.trim().split("\n").at(-1) || "it ended without a word";
    throw new TaskError(
      "python",
      `${this.#python} cannot run the baselines: ${why}; give a Python with numpy, pandas and scikit-learn (--python)`,
    );
  }

  [Symbol.dispose](): void {
    this.#child.stdin!.end();
    this.#child.kill();
  }
}
