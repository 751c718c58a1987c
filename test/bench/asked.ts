import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A process that answers each line on its stdin with a line of JSON; its first line means that it is ready. */
export class Asked<Answer> {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  readonly #name: string;

  private constructor(name: string, file: string, args: string[]) {
    this.#name = name;
    this.#child = spawn(file, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#answers = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  /** @throws Error if it ends before it is ready */
  static async start<Answer>(name: string, file: string, args: string[]): Promise<Asked<Answer>> {
    const asked = new Asked<Answer>(name, file, args);
    await asked.#answer();
    return asked;
  }

  async ask(): Promise<Answer> {
    this.#child.stdin!.write("\n");
    return (await this.#answer()) as Answer;
  }

  close(): void {
    this.#child.stdin!.end();
    this.#child.kill();
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`${this.#name} ended without an answer`);
    return JSON.parse(value);
  }
}
