/**
 * The fencing token on a run's volume, `fence.json`. The learner that started last holds it; a learner that lost it writes nothing more.
 * Two learners can run at once: a pod on a node that is cut off, or a paused process, does not know that another learner has replaced it.
 *
 * The token is checked before every write: by the store in each transaction (store/database.ts, in addition to its own number), by the run
 * before it writes a file. A process that is paused between check and write can still write that file. This does no harm, because a run
 * makes its files again from the store.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StoreError } from "./store/errors.ts";

const FILE = "fence.json";

interface Token {
  /** Grows by 1 with each learner that takes the volume. */
  number: number;
  /** Host and process, for people. */
  holder: string;
  takenAt: string;
  /** Distinguishes two learners that took the same number at the same time: the later one holds the token. */
  id: string;
}

export class Fence {
  readonly #path: string;
  readonly #token: Token;

  private constructor(path: string, token: Token) {
    this.#path = path;
    this.#token = token;
  }

  /** Takes the volume over. @throws StoreError `io` */
  static take(directory: string, holder: string, now = new Date()): Fence {
    const path = join(directory, FILE);
    const number = (readToken(path)?.number ?? 0) + 1;
    const token: Token = { number, holder, takenAt: now.toISOString(), id: randomUUID() };
    const partial = `${path}.${token.id}`;
    try {
      writeFileSync(partial, `${JSON.stringify(token)}\n`, { flush: true });
      renameSync(partial, path);
    } catch (cause) {
      rmSync(partial, { force: true });
      throw new StoreError("io", `${path} cannot be written: ${(cause as Error).message}`, { cause });
    }
    // Learners that were killed while they took the volume have left these files. A learner that takes it at this moment fails and is
    // restarted.
    for (const name of readdirSync(directory))
      if (name.startsWith(`${FILE}.`)) rmSync(join(directory, name), { force: true });
    return new Fence(path, token);
  }

  /** @throws StoreError `fenced` if another learner has taken the volume, or the file is missing */
  check(): void {
    const found = readToken(this.#path);
    if (found?.id === this.#token.id) return;
    const taken = found && `was taken by ${found.holder} at ${found.takenAt}`;
    const what = taken ? `${taken} (number ${found.number}, ours is ${this.#token.number})` : "is gone or damaged";
    throw new StoreError("fenced", `${this.#path} ${what}: stop this learner`);
  }
}

/** Returns undefined if the file is missing or damaged; then nobody holds the token. */
function readToken(path: string): Token | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Token;
  } catch {
    return undefined;
  }
}
