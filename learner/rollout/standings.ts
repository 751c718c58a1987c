import type { Standing } from "../grading/reward-kinds.ts";
import type { Store } from "../store/store.ts";
import type { Sample } from "../store/types.ts";

/** Valid scores of one task in the batches of iterations 1, 2, …; `ends[i]` of them are of iterations up to i. */
interface History {
  scores: number[];
  ends: number[];
}

/**
 * Finds what `reward: Rank` and `reward: Improvement` compare a sample with. It depends on the sample alone: its ancestors, and the batches
 * that its policy version had been trained on. Neither changes after the prompt was drawn, so a learner that grades the sample later, after
 * a restart, finds the same.
 */
export class Standings {
  readonly #store: Pick<Store, "scoreBefore" | "batchScores" | "ownerOf">;
  /** Histories by lineage and task. A lineage's history grows with its iterations. */
  readonly #histories = new Map<number, Map<string, History>>();

  constructor(store: Pick<Store, "scoreBefore" | "batchScores" | "ownerOf">) {
    this.#store = store;
  }

  of({ id, task, lineage, iteration }: Pick<Sample, "id" | "task" | "lineage" | "iteration">): Standing {
    return {
      parentScore: this.#store.scoreBefore(id),
      earlierScores: this.#earlier(task, { lineage, iteration }),
    };
  }

  #earlier(task: string, { lineage, iteration }: { lineage: number; iteration: number }): readonly number[] {
    const tasks = this.#histories.get(lineage) ?? new Map<string, History>();
    this.#histories.set(lineage, tasks);
    const history = tasks.get(task) ?? { scores: [], ends: [0] };
    tasks.set(task, history);
    const { scores, ends } = history;
    while (ends.length <= iteration) {
      const version = { lineage, iteration: ends.length };
      scores.push(...this.#store.batchScores(task, { ...version, lineage: this.#store.ownerOf(version) }));
      ends.push(scores.length);
    }
    return scores.slice(0, ends[iteration]);
  }
}
