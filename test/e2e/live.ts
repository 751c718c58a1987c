/**
 * The objects of one kind in one namespace, as a watch shows them. One kubectl serves all waits of a flow; a kubectl for each look would
 * cost 0.2 s of a core, twice a second.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

interface Named {
  metadata: { name: string; resourceVersion?: string };
}

/** Pause before the next list, where the list or the watch has failed. */
const RETRY_SECONDS = 0.5;

export class Live<T extends Named> {
  #objects = new Map<string, T>();
  readonly #kubectl: string[];
  readonly #path: string;
  readonly #changes = new EventEmitter().setMaxListeners(0);
  #watch: ChildProcess | undefined;
  #isListed = false;
  #isStopped = false;

  /** @param kubectl program and first arguments @param path of the API server, such as `/api/v1/namespaces/training/pods` */
  constructor(kubectl: string[], path: string) {
    this.#kubectl = kubectl;
    this.#path = path;
    void this.#follow();
  }

  /** Returns undefined until the first list has arrived. */
  get objects(): T[] | undefined {
    return this.#isListed ? [...this.#objects.values()] : undefined;
  }

  /** Waits for the next change, or for the end of the time. */
  async change(milliseconds: number): Promise<void> {
    await once(this.#changes, "change", { signal: AbortSignal.timeout(milliseconds) }).catch(() => {});
  }

  stop(): void {
    this.#isStopped = true;
    this.#watch?.kill();
  }

  async #follow(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#followOnce();
      } catch {
        await sleep(RETRY_SECONDS * 1000); // such as before the kind exists
      }
    }
  }

  async #followOnce(): Promise<void> {
    const [file, ...args] = this.#kubectl;
    const { stdout } = await promisify(execFile)(file!, [...args, "get", "--raw", this.#path], { maxBuffer: 64 << 20 });
    const list = JSON.parse(stdout) as { metadata: { resourceVersion: string }; items: T[] };
    this.#objects = new Map(list.items.map((object) => [object.metadata.name, object]));
    this.#isListed = true;
    this.#changes.emit("change");
    if (this.#isStopped) return;
    const path = `${this.#path}?watch=1&resourceVersion=${list.metadata.resourceVersion}`;
    this.#watch = spawn(file!, [...args, "get", "--raw", path], { stdio: ["ignore", "pipe", "ignore"] });
    try {
      for await (const line of createInterface({ input: this.#watch.stdout! })) this.#take(JSON.parse(line));
    } finally {
      this.#watch.kill();
    }
  }

  #take({ type, object }: { type: string; object: T }): void {
    if (type === "ERROR") throw new Error("the watch has expired");
    if (type === "DELETED") this.#objects.delete(object.metadata.name);
    else this.#objects.set(object.metadata.name, object);
    this.#changes.emit("change");
  }
}
