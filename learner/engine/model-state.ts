/** What is trained of a model, in shared memory: all that a checkpoint has of it. */

import type { Moments } from "./adamw.ts";
import { type ParameterShape, Parameters } from "./graph/parameters.ts";

/** Optimiser steps, and the moments after the last. */
export interface TakenSteps {
  steps: number;
  moments: Moments;
}

export class ModelState {
  readonly weights: Parameters;
  /** from the first step on; on a device from the first time on that they are fetched */
  moments: Moments | undefined;
  /** optimiser steps taken */
  steps = 0;
  /** The sum of the last step's gradients before it was clipped, where it is in shared memory. */
  gradient: Parameters | undefined;

  /** @param weights that exist already, in this layout */
  constructor(shapes: readonly ParameterShape[], weights?: Float32Array) {
    this.weights = new Parameters(shapes, weights);
  }

  /** Whether no step has been taken and the weights equal those of `other`. */
  untrained(other: ModelState): boolean {
    return this.steps === 0 && Buffer.compare(bytes(this.weights.data), bytes(other.weights.data)) === 0;
  }

  /** Goes on from these weights and moments. */
  restore(weights: ReadonlyMap<string, Float32Array>, taken: TakenSteps | undefined): void {
    for (const [name, data] of weights) this.weights.set(name, data);
    this.moments = taken?.moments;
    this.steps = taken?.steps ?? 0;
  }
}

const bytes = ({ buffer, byteOffset, byteLength }: Float32Array) => new Uint8Array(buffer, byteOffset, byteLength);
