/** `algorithm.zeroSignal: Resample`: groups whose samples all earned the same make room for other groups (DAPO, arXiv 2503.14476). */
import type { Algorithm, TrainingRunSpec } from "../crds/trainingrun.ts";
import type { Grades } from "./grades.ts";
import { overlongPenalty } from "./rl/overlong.ts";
import type { Store } from "./store/store.ts";
import type { OpenGroup, Sample } from "./store/types.ts";

interface Resampling {
  spec: Pick<TrainingRunSpec, "algorithm" | "model">;
  store: Pick<Store, "groupSamples">;
  grades: Pick<Grades, "gradeFinished">;
}

/** The groups of one iteration that are thrown away. */
export class Resample {
  readonly #spec: Resampling["spec"];
  readonly #store: Resampling["store"];
  readonly #grades: Resampling["grades"];
  /** How many groups may be thrown away: what `oversampling` allows beyond the batch. */
  readonly #most: number;
  readonly #thrown = new Set<string>();
  /** Groups that teach something. */
  readonly #kept = new Set<string>();

  /** @param size of a batch, in groups */
  constructor({ spec, store, grades }: Resampling, size: number) {
    this.#spec = spec;
    this.#store = store;
    this.#grades = grades;
    const { zeroSignal, oversampling } = spec.algorithm;
    this.#most = zeroSignal === "Resample" ? Math.ceil(oversampling * size) - size : 0;
  }

  get size(): number {
    return this.#thrown.size;
  }

  has({ id }: OpenGroup): boolean {
    return this.#thrown.has(id);
  }

  /** Throws away the groups of a batch that teach nothing, the oldest first. @returns whether there was one */
  from(batch: readonly OpenGroup[]): boolean {
    const before = this.#thrown.size;
    if (before >= this.#most) return false;
    this.#grades.gradeFinished();
    for (const { id } of batch) {
      if (this.#thrown.size >= this.#most) break;
      if (this.#kept.has(id)) continue;
      const { algorithm, model } = this.#spec;
      const isAlike = areAlike(this.#store.groupSamples([id]), algorithm, model.maxResponseTokens);
      (isAlike ? this.#thrown : this.#kept).add(id);
    }
    return this.#thrown.size > before;
  }

  /** Returns the ids of the samples that were thrown away. */
  samples(): string[] {
    return this.#store.groupSamples([...this.#thrown]).map(({ id }) => id);
  }
}

/** Returns whether all samples of a group have the same reward, and the same score if `validScoreWeight` counts it. */
export function areAlike(samples: readonly Sample[], o: Algorithm, maxResponseTokens: number): boolean {
  const earned = samples.map(({ grade, responseTokens: response, truncated }) => {
    const reward =
      grade === undefined ? undefined : grade.reward - overlongPenalty({ response, truncated }, o, maxResponseTokens);
    return `${reward} ${o.validScoreWeight > 0 && grade?.valid ? grade.score : ""}`;
  });
  return new Set(earned).size <= 1;
}
