/** The actor's slots: a sandbox each, replaced when it breaks. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorError } from "./errors.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";

export interface SlotsOptions extends Omit<SandboxOptions, "space" | "inputs" | "cpus" | "cpusPerSlot"> {
  count: number;
  /** Below it each slot has its directory. */
  scratch: string;
  /** Processors of all slots together; shared out when there are enough, else each slot may use all. */
  cpus?: number[];
  /** Task -> its public data; asked for at each start of a sandbox. */
  inputs: () => Promise<Record<string, string>>;
  /** Replacements of one slot that may fail in a row. */
  maxFailures?: number;
  onBroken?: (slot: number, error: Error) => void;
}

/** Which processors slot `index` of `count` is bound to, and how many threads its libraries may use. */
export function shareCpus(cpus: number[] | undefined, index: number, count: number) {
  const each = Math.floor((cpus?.length ?? 0) / count);
  if (!cpus || each < 1) return { cpus, cpusPerSlot: 1 };
  return { cpus: cpus.slice(index * each, (index + 1) * each), cpusPerSlot: each };
}

export class Slots {
  /** Rejects when a slot cannot be replaced; never resolves. */
  readonly failure: Promise<never>;
  readonly #options: SlotsOptions;
  readonly #sandboxes: (Sandbox | undefined)[];
  readonly #free: number[] = [];
  readonly #waiting: ((slot: number) => void)[] = [];
  #fail!: (error: Error) => void;
  #stopped = false;

  /** `first`: a sandbox that was started already, for slot 0. */
  constructor(options: SlotsOptions, first?: Sandbox) {
    this.#options = options;
    this.#sandboxes = Array.from({ length: options.count }, () => undefined);
    this.#sandboxes[0] = first;
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => {});
  }

  /** Starts what has not been started. Throws ActorError. */
  async start(): Promise<void> {
    await Promise.all(
      this.#sandboxes.map(async (sandbox, slot) => {
        this.#sandboxes[slot] = sandbox ?? (await this.#startOne(slot));
        this.#release(slot);
      }),
    );
  }

  /** Runs `work` with a sandbox that has `task`'s data, as soon as one is free, and mends it afterwards if need be. */
  async use<T>(task: string, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const slot = this.#free.shift() ?? (await new Promise<number>((resolve) => this.#waiting.push(resolve)));
    try {
      let sandbox = this.#sandboxes[slot]!;
      if (!Object.hasOwn(sandbox.inputs, task)) {
        // The task may have come after the sandbox was started.
        await sandbox.stop();
        sandbox = this.#sandboxes[slot] = await this.#startOne(slot);
        if (!Object.hasOwn(sandbox.inputs, task))
          throw new ActorError("task", `task ${task}: this actor has no public data of it`);
      }
      return await work(sandbox);
    } finally {
      void this.#mend(slot);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#sandboxes.map((sandbox) => sandbox?.stop()));
  }

  async #mend(slot: number): Promise<void> {
    const { maxFailures = 5, onBroken } = this.#options;
    for (let failures = 0; !this.#sandboxes[slot]!.alive && !this.#stopped; ) {
      try {
        await this.#sandboxes[slot]!.stop();
        this.#sandboxes[slot] = await this.#startOne(slot);
      } catch (error) {
        onBroken?.(slot, error as Error);
        if (++failures >= maxFailures) return this.#fail(error as Error);
        await sleep(200 * 2 ** failures);
      }
    }
    this.#release(slot);
  }

  #release(slot: number): void {
    const next = this.#waiting.shift();
    if (next) next(slot);
    else this.#free.push(slot);
  }

  async #startOne(slot: number): Promise<Sandbox> {
    const { count, scratch, inputs, cpus, ...rest } = this.#options;
    const space = join(scratch, `slot-${slot}`);
    return Sandbox.start({ ...rest, ...shareCpus(cpus, slot, count), space, inputs: await inputs() });
  }
}
