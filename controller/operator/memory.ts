/**
 * State of a run that this process keeps between reconciles. All of it may be lost at any time: it saves work and waiting, but no decision
 * depends on it alone. Each part of a reconcile has a slice, which only its own results change (`settle` of context.ts).
 */
import type { Run } from "./desired/names.ts";
import type { Kept } from "./writes/kept-fields.ts";
import type { Applied } from "./writes/writes.ts";

/** An owner of a slice. */
export interface Remembers<Memory extends object> {
  /** Returns the slice of a run that this process sees for the first time. */
  initial?(run: Run, nowMs: number): Memory;
}

export interface RunMemory {
  run: Run;
  applied: Applied;
  kept: Kept;
  /** Calls to the learner or the webhook that have not returned. */
  calls: Set<string>;
  /** By owner. */
  slices: Map<object, object>;
}

/** Returns the owner's slice. It is changed in place, so every holder sees a change. */
export function sliceOf<Memory extends object>(
  { run, slices }: RunMemory,
  owner: Remembers<Memory>,
  nowMs: number,
): Memory {
  const known = slices.get(owner) as Memory | undefined;
  const slice = known ?? owner.initial?.(run, nowMs) ?? ({} as Memory);
  if (!known) slices.set(owner, slice);
  return slice;
}

export class Memories {
  readonly #runs = new Map<string, RunMemory>();

  /** Returns the memory of this run. An earlier run with the same name leaves no memory. */
  of(key: string, run: Run): RunMemory {
    const known = this.#runs.get(key);
    const memory: RunMemory =
      known?.run.metadata.uid === run.metadata.uid
        ? Object.assign(known, { run })
        : { run, applied: new Map(), kept: new Map(), calls: new Set(), slices: new Map() };
    this.#runs.set(key, memory);
    return memory;
  }

  /** @returns the remembered value */
  forget(key: string): RunMemory | undefined {
    const memory = this.#runs.get(key);
    this.#runs.delete(key);
    return memory;
  }
}
