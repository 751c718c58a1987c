/** Draws from lists, with a stream of uniform numbers in [0, 1) such as `uniforms()` of learner/engine/model/random.ts gives. */
export class Draw {
  readonly #next: () => number;

  constructor(next: () => number) {
    this.#next = next;
  }

  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  /** A number between `low` and `high` whose logarithm is uniform. */
  logUniform(low: number, high: number): number {
    return low * (high / low) ** this.#next();
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#next() * items.length)];
  }

  /** One of the items with this probability, else undefined. */
  maybe<T>(probability: number, items: readonly T[]): T | undefined {
    return this.chance(probability) ? this.pick(items) : undefined;
  }

  /** One of the values, each as likely as its weight says. */
  weighted<const T>(...choices: readonly (readonly [weight: number, value: T])[]): T {
    let rest = this.#next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) {
      rest -= weight;
      if (rest < 0) return value;
    }
    return choices[choices.length - 1][1];
  }
}
