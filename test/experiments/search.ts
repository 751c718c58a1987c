/**
 * Random search over the program space of the policy's pretraining, an obvious baseline: programs of the corpus' generator, without
 * mistakes, executed in the actors' sandboxes on all cores.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import type { Sandbox } from "../../actor/sandbox.ts";
import type { Grader } from "../../crds/trainingrun.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { gradeSubmission, readAnswers } from "../../learner/grading/grade.ts";
import { Draw } from "../../learner/pretrain/draw.ts";
import { drawDesign, writeDraft } from "../../learner/pretrain/programs.ts";
import { shapes } from "../../learner/pretrain/shapes.ts";
import { benchEnvironment } from "../bench/environment.ts";

/** An executed program. */
export interface Tried {
  /** Seconds since the search began. */
  at: number;
  /** null: no valid submission. */
  score: number | null;
}

export interface Search {
  task: string;
  grader: Grader;
  /** Contains `public/` and `private/`. */
  folder: string;
  seed: number;
  seconds: number;
  timeoutSeconds: number;
}

/** Searches for the given time; writes `search.json` and `best/submission.csv` to `directory`. */
export async function randomSearch(search: Search, directory: string): Promise<void> {
  const { task, grader, folder, seconds } = search;
  const { python } = await benchEnvironment(task);
  const answers = readAnswers(readFileSync(join(folder, "private/answers.csv")), grader, { split: "EveryOther" });
  const inputs = { [task]: join(folder, "public") };
  const space = await mkdtemp(join(tmpdir(), "longrun-search-"));
  // The time to start sandboxes counts, as in a run.
  const began = performance.now();
  const at = () => (performance.now() - began) / 1000;
  const sandboxes: Sandbox[] = [];
  const tried: Tried[] = [];
  let best: { score: number; submission: Buffer } | undefined;
  let drawn = 0;
  try {
    for (let slot = 0; slot < availableParallelism(); slot++)
      sandboxes.push((await startIsolated({ python, inputs, space: join(space, String(slot)), cpus: [slot] })).sandbox);
    const limits = { ...DEFAULT_LIMITS, timeoutSeconds: search.timeoutSeconds, memoryBytes: 1.5 * 2 ** 30 };
    const work = async (sandbox: Sandbox) => {
      while (at() < seconds) {
        const program = Buffer.from(programOf(search, drawn++));
        const result = await execute(sandbox, { task, program, nonce: "", limits, seed: search.seed });
        const graded =
          result.outcome === "completed" && result.submission ? gradeSubmission(result.submission, answers) : undefined;
        const score = graded?.valid ? graded.score! : null;
        tried.push({ at: at(), score });
        if (score === null || (best && !isBetter(score, best.score, grader))) continue;
        best = { score, submission: result.submission! };
      }
    };
    await Promise.all(sandboxes.map(work));
  } finally {
    for (const sandbox of sandboxes) await sandbox.stop();
    await rm(space, { recursive: true, force: true });
  }
  if (!best) throw new Error(`none of ${tried.length} programs was valid`);
  mkdirSync(join(directory, "best"));
  writeFileSync(join(directory, "best/submission.csv"), best.submission);
  writeFileSync(join(directory, "search.json"), JSON.stringify(tried));
}

export function readSearch(directory: string): Tried[] {
  return JSON.parse(readFileSync(join(directory, "search.json"), "utf8")) as Tried[];
}

export function isBetter(score: number, than: number, { direction }: Pick<Grader, "direction">): boolean {
  return direction === "Higher" ? score > than : score < than;
}

function programOf({ task, seed }: Search, index: number): string {
  const shape = shapes.find(({ name }) => name === task)!;
  const draw = new Draw(uniforms(seed, "search", index));
  return writeDraft(drawDesign(shape, draw), shape, draw).lines.join("\n");
}
