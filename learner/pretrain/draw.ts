/** Draws from lists with a stream of uniform numbers in [0, 1), such as `uniforms()` of learner/engine/model/random.ts. */
export class Draw {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  /** Returns a number between `low` and `high` whose logarithm is uniformly distributed. */
  logUniform(low: number, high: number): number {
    return low * (high / low) ** this.#next();
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#next() * items.length)];
  }

  /** Returns one of the items with this probability, else undefined. */
  maybe<T>(probability: number, items: readonly T[]): T | undefined {
    return this.chance(probability) ? this.pick(items) : undefined;
  }

  /** Returns one of the values, in proportion to the weights. */
  weighted<const T>(...choices: readonly (readonly [weight: number, value: T])[]): T {
    let rest = this.#next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) {
      rest -= weight;
      if (rest < 0) return value;
    }
    return choices[choices.length - 1][1];
  }
}
