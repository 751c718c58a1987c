/**
 * What this actor's sandboxes import before any program comes. With `--warm` that list; without it what programs use most
 * (sandbox/warm.py), until the learner says what the run's programs use (learner/server/warm.ts): then that. What a sandbox
 * could not live with is left out from then on, and a slot whose sandbox did not start with it is tried without.
 */
import type { SandboxInfo } from "./sandbox.ts";

type LogMethod = (fields: object, message: string) => void;

export class Warm {
  readonly #fixed: readonly string[] | undefined;
  readonly #log: { info: LogMethod; warn: LogMethod };
  #learned: readonly string[] | undefined;
  readonly #refused = new Set<string>();
  /** Slots whose next sandbox is tried without what was learned. */
  readonly #without = new Set<number>();
  #logged = "";
  /** Modules that the sandbox has that started last. */
  imported: readonly string[] = [];

  /** @param fixed what is imported whatever the learner says */
  constructor(fixed: readonly string[] | undefined, log: { info: LogMethod; warn: LogMethod }) {
    this.#fixed = fixed;
    this.#log = log;
  }

  /** What the slot's sandbox is to import if it is started now; undefined: what programs use most. */
  modulesOf(slot: number): readonly string[] | undefined {
    if (this.#fixed) return this.#fixed;
    return this.#without.has(slot) ? undefined : this.#learned?.filter((name) => !this.#refused.has(name));
  }

  /** The learner's word. @returns whether sandboxes that were started before have other modules */
  learn(modules: readonly string[]): boolean {
    if (this.#fixed) return false;
    const before = this.#learned && new Set(this.#learned);
    this.#learned = [...modules];
    return before?.size !== modules.length || modules.some((name) => !before.has(name));
  }

  /** The slot's sandbox has started: notes what it has, and says it where that is news. */
  started(slot: number, { warm, refused }: Pick<SandboxInfo, "warm" | "refused">): void {
    this.#without.delete(slot);
    this.imported = warm;
    for (const [module, reason] of Object.entries(refused)) {
      if (this.#refused.has(module)) continue;
      this.#refused.add(module);
      this.#log.warn({ module, reason }, "not imported beforehand: sandboxes could not live with it");
    }
    const said = [...warm].sort().join(",");
    if (said === this.#logged) return;
    this.#logged = said;
    const source = this.#fixed ? "--warm" : this.#learned ? "learned from programs" : "default";
    this.#log.info({ modules: warm, source }, "sandboxes have these modules imported");
  }

  /** The slot's sandbox did not start: perhaps because of what was learned, and then the next one does without. */
  failed(slot: number): void {
    if (this.#fixed || !this.#learned) return;
    if (this.#without.delete(slot)) return; // neither did it without
    this.#without.add(slot);
    this.#log.warn(
      { slot, modules: this.#learned },
      "a sandbox did not start with what was learned; it is tried without",
    );
  }
}
