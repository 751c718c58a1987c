/** Makes what test files need, such as programs of a cluster, while tests that need nothing run. */
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { type Binary, makeBinaries, NPM_TEST } from "../cluster/binaries.ts";
import { ensureTokenizer, type RealTokenizer } from "../tokenizers.ts";
import { type Need, needsOf } from "./files.ts";

const isBinary = (need: Need): need is Binary => need !== "python" && need !== "tokenizer";

export class Needs {
  /** {need: why it could not be made} */
  readonly failed = new Map<Need, string>();
  readonly #files: readonly string[];
  readonly #making: Promise<void>[];
  readonly #settled: Set<Need>;
  #changed = Promise.withResolvers<void>();

  /**
   * Begins to make what `files` need, one program after the other.
   *
   * @param all whether to make the programs of other lanes as well, whose builds take too long for `npm test`
   * @param tokenizers those to fetch if files need any
   * @param say is called with each line about what is made and how many files wait
   */
  constructor(
    files: readonly string[],
    all: boolean,
    tokenizers: readonly RealTokenizer[],
    say: (line: string) => void,
  ) {
    this.#files = files;
    const needed = [...new Set(files.flatMap(needsOf))];
    const log = (line: string) => {
      const waiting = files.filter((file) => !this.areMade(file)).length;
      say(`… ${line}${waiting > 0 ? `; ${waiting} test files wait` : ""}`);
    };
    const binaries = needed.filter(isBinary).filter((name) => all || NPM_TEST.includes(name));
    const inOrder = [...NPM_TEST.filter((name) => binaries.includes(name)), ...binaries];
    const made = new Map<Need, Promise<unknown>>();
    if (needed.includes("python")) made.set("python", ensurePythonEnvironment({ onProgress: log }));
    if (needed.includes("tokenizer")) made.set("tokenizer", Promise.all(tokenizers.map(ensureTokenizer)));
    this.#settled = new Set(needed.filter((need) => !made.has(need) && !(isBinary(need) && binaries.includes(need))));
    for (const [name, path] of makeBinaries(inOrder, { log })) made.set(name, path);
    this.#making = [...made].map(([need, promise]) => this.#follow(need, promise));
  }

  async #follow(need: Need, made: Promise<unknown>): Promise<void> {
    await made.catch((error: Error) => this.failed.set(need, error.message));
    this.#settled.add(need);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Returns whether everything that a file needs was made, or cannot be made. */
  areMade(file: string): boolean {
    return needsOf(file).every((need) => this.#settled.has(need));
  }

  /** Settles when another thing was made. */
  change(): Promise<void> {
    return this.#changed.promise;
  }

  async all(): Promise<void> {
    await Promise.all(this.#making);
  }

  /** Returns one line with what is not tested because something could not be made, or undefined. */
  notTested(): string | undefined {
    if (this.failed.size === 0) return undefined;
    const without = this.#files.filter((file) => needsOf(file).some((need) => this.failed.has(need)));
    const [reason] = this.failed.values();
    return `not tested without ${[...this.failed.keys()].join(", ")}: tests of ${without.join(", ")}: ${reason}`;
  }
}
