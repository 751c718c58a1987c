/** A bound on the work of one rendering. */
import type { Value } from "./values.ts";

/**
 * The most steps of one rendering: an evaluated part of the template, an item of a loop, 64 characters of text, or 16 items of a list.
 * Templates of known models take some 100 for a message. This many steps take 0.5 to 2 s on one core.
 */
export const TEMPLATE_STEPS = 2_000_000;

export class Steps {
  readonly #most: number;
  #left: number;

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** @throws RangeError after the last step */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new RangeError(`it takes more than ${this.#most} steps; shorten the chat or its loops`);
  }

  /** Pays for a new value by its length, so that no loop can double a text or a list for long. */
  sized(value: Value): Value {
    if (typeof value === "string") this.spend(value.length / 64);
    else if (Array.isArray(value)) this.spend(value.length / 16);
    return value;
  }

  /** Pays for a walk through a value, whose lists may hold one list many times. */
  walked(value: Value): Value {
    this.spend(sizeOf(value) / 16);
    return value;
  }
}

const sizes = new WeakMap<object, number>();

/** Items at all depths, counted again wherever they appear, and a quarter of the characters of texts. */
function sizeOf(value: Value): number {
  if (typeof value === "string") return value.length / 4;
  if (!(Array.isArray(value) || value instanceof Map)) return 1;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  let size = 1;
  for (const item of value.values()) size += sizeOf(item);
  sizes.set(value, size);
  return size;
}
