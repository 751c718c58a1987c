/** The actor's slots. Each has a sandbox, which is restarted when it breaks. */
import { setTimeout as sleep } from "node:timers/promises";
import { ActorError } from "./errors.ts";
import type { Sandbox } from "./sandbox.ts";

export interface SlotsOptions {
  count: number;
  /** Starts a sandbox for a slot; gives up after `seconds`. */
  start: (slot: number, seconds: number) => Promise<Sandbox>;
  /** Longest wait for a sandbox at the beginning. */
  startSeconds?: number;
  /** Longest wait for a sandbox that broke to come back. */
  restartSeconds?: number;
  /** Longest wait of a lease for a free slot. The learner only sends a lease for a free slot, so a wait means that the slot broke. */
  leaseWaitSeconds?: number;
  /** Called when a sandbox broke (with its fault), so fewer slots are usable, and when it works again (without a fault). */
  onChange?: (slot: number, fault?: Error) => void;
  /** Called when a restart failed. */
  onRetry?: (slot: number, error: Error) => void;
}

const SHORTEST_PAUSE_SECONDS = 0.2;
const LONGEST_PAUSE_SECONDS = 10;

/** Returns the processors that slot `index` of `count` is bound to, and the number of threads that its libraries may use. */
export function shareCpus(cpus: number[] | undefined, index: number, count: number) {
  const each = Math.floor((cpus?.length ?? 0) / count);
  if (!cpus || each < 1) return { cpus, cpusPerSlot: 1 };
  return { cpus: cpus.slice(index * each, (index + 1) * each), cpusPerSlot: each };
}

export class Slots {
  /** Rejects when a slot could not be restarted; never resolves. The other slots continue. */
  readonly failure: Promise<never>;
  readonly #options: SlotsOptions;
  readonly #sandboxes: (Sandbox | undefined)[];
  readonly #free: number[] = [];
  readonly #waiting: ((slot: number) => void)[] = [];
  #fail!: (error: Error) => void;
  #stopped = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#sandboxes = Array.from({ length: options.count }, () => undefined);
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => {});
  }

  /** Starts all sandboxes except `first`, which already runs for slot 0. Throws ActorError. */
  async start(first?: Sandbox): Promise<void> {
    const { startSeconds = 120 } = this.#options;
    await Promise.all(
      this.#sandboxes.map(async (_, slot) => {
        if (slot === 0 && first) this.#place(slot, first);
        else await this.#start(slot, startSeconds);
        void this.#release(slot);
      }),
    );
  }

  /** Returns the number of slots with a working sandbox, busy or free. */
  get usable(): number {
    return this.#sandboxes.filter((sandbox) => sandbox?.alive).length;
  }

  /**
   * Runs `work` with a sandbox that has the data of `task`, as soon as one is free, and then restarts the sandbox if it broke.
   * Throws ActorError `sandbox` if none is free within `leaseWaitSeconds`, `task` if this actor lacks the data.
   */
  async use<T>(task: string, work: (sandbox: Sandbox, slot: number) => Promise<T>): Promise<T> {
    const slot = this.#free.shift() ?? (await this.#nextFree());
    try {
      let sandbox = this.#sandboxes[slot]!;
      if (!Object.hasOwn(sandbox.inputs, task)) {
        // The task may have been added after the sandbox was started.
        await sandbox.stop();
        sandbox = await this.#start(slot, this.#options.startSeconds);
        if (!Object.hasOwn(sandbox.inputs, task))
          throw new ActorError("task", `task ${task}: this actor lacks its public data`);
      }
      return await work(sandbox, slot);
    } finally {
      void this.#release(slot);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#sandboxes.map((sandbox) => sandbox?.stop()));
  }

  #nextFree(): Promise<number> {
    const { leaseWaitSeconds = 30 } = this.#options;
    return new Promise((resolve, reject) => {
      const take = (slot: number) => {
        clearTimeout(late);
        resolve(slot);
      };
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(new ActorError("sandbox", `sandbox: no slot was free within ${leaseWaitSeconds} s`));
      }, leaseWaitSeconds * 1000);
      this.#waiting.push(take);
    });
  }

  async #start(slot: number, seconds = 120): Promise<Sandbox> {
    const sandbox = await this.#options.start(slot, seconds);
    this.#place(slot, sandbox);
    return sandbox;
  }

  #place(slot: number, sandbox: Sandbox): void {
    this.#sandboxes[slot] = sandbox;
    // A sandbox that breaks while in use is restarted when its user is done.
    void sandbox.ended.then(() => {
      const place = this.#free.indexOf(slot);
      if (this.#sandboxes[slot] !== sandbox || place === -1) return;
      this.#free.splice(place, 1);
      void this.#release(slot);
    });
  }

  /** Gives the slot to the next user, with a working sandbox. */
  async #release(slot: number): Promise<void> {
    if (!this.#sandboxes[slot]!.alive && !(await this.#mend(slot))) return;
    const next = this.#waiting.shift();
    if (next) next(slot);
    else this.#free.push(slot);
  }

  async #mend(slot: number): Promise<boolean> {
    const { restartSeconds = 60, onChange, onRetry } = this.#options;
    const deadline = performance.now() + restartSeconds * 1000;
    const left = () => (deadline - performance.now()) / 1000;
    const broken = this.#sandboxes[slot]!;
    if (!this.#stopped) onChange?.(slot, broken.fault);
    await broken.stop();
    for (let pause = SHORTEST_PAUSE_SECONDS; !this.#stopped; pause = Math.min(2 * pause, LONGEST_PAUSE_SECONDS)) {
      try {
        await this.#start(slot, left());
        onChange?.(slot);
        return true;
      } catch (error) {
        if (this.#stopped) break;
        onRetry?.(slot, error as Error);
        if (left() < pause) {
          this.#fail(error as Error);
          break;
        }
        await sleep(pause * 1000);
      }
    }
    return false;
  }
}
