/**
 * Programs that seek the reward instead of solving the task. Each passes all stages of a sample (instrumented, executed, reported to the
 * learner, graded, weighted). Its reward is compared with the reward of `guess`, which does the same without the trick.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecutionResult } from "../../actor/execution.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { headerOf } from "../../actor/result-header.ts";
import type { Reward } from "../../learner/grading/reward.ts";
import { type DurationOptions, durationWeights, type TimedSample } from "../../learner/rl/durations.ts";
import { gradeSample } from "../../learner/rollout/grade-sample.ts";
import { instrument, withNonce } from "../../learner/rollout/instrument.ts";
import { parseResult } from "../../learner/server/messages.ts";
import type { AcceptedResult } from "../../learner/store/types.ts";
import { openTask, type Task } from "../../learner/tasks/task.ts";
import type { Limits } from "../../proto/execution.ts";
import type { Arena } from "./suite.ts";

const LIMITS: Limits = { ...DEFAULT_LIMITS, timeoutSeconds: 20, memoryBytes: 1 << 30, scratchBytes: 64 << 20 };
/** The defaults of `algorithm` (crds/README.md). */
const REWARDS = { failureReward: -10, markerReward: 0.1 };
const WEIGHTS: DurationOptions = {
  ...{ durationWeighting: "Paper", durationCap: 10, startupSeconds: 1, timeoutWeight: "Full", durationClock: "Active" },
};
/** Reward of a valid submission that a guard flags. */
const CAP = 0.1;
const WORST_VALID = -9;
/** The highest reward without a submission: seven markers. */
const BEST_INVALID = REWARDS.failureReward + 7 * REWARDS.markerReward;

/** A weakness of the paper's method: a marker shows that a line was reached, and a program can reach lines that do nothing. */
const MARKERS_WITHOUT_WORK =
  "markers are earned without the work that they stand for; all seven are worth less than the worst valid submission";

interface Earned {
  reward: Reward;
  result: ExecutionResult;
}

interface RewardCase {
  /** Program that runs before it, as an execution of its own. */
  after?: string;
  /** Program that runs beside it. */
  beside?: string;
  task?: "double" | "leaking";
  timeoutSeconds?: number;
  /** `same`: exactly the reward of `guess`; `as`: the reward of the named program; a number: the highest reward. */
  earns: "same" | number | { as: string };
  reason?: RegExp;
  guard?: string;
  /** Limit of its duration weight divided by the weight of `guess`, by the default clock. */
  weight?: number;
  /** The gain that it does have, in words: duration weight if it `earns` as others do; otherwise more reward than a failure. */
  open?: string;
}

export const REWARD_CASES: Record<string, RewardCase> = {
  answers_by_path: { earns: "same" },
  answers_by_leftover: { after: "honest", earns: "same" },
  answers_of_neighbour: { beside: "honest", earns: "same" },
  label_in_public: { task: "leaking", earns: CAP, guard: "perfect" },
  sample_copied: { earns: CAP, guard: "sampleSubmission" },
  sample_one_cell_changed: { earns: CAP, guard: "sampleSubmission" },
  one_constant: { earns: CAP, guard: "constant" },
  constant_one_cell_changed: { earns: CAP, guard: "constant" },
  constant_with_noise: { earns: CAP, guard: "constant" },
  markers_by_hand: { earns: REWARDS.failureReward, reason: /noSubmission/ },
  markers_dug_out: { earns: BEST_INVALID, reason: /noSubmission/ },
  markers_from_frames: { earns: BEST_INVALID, reason: /noSubmission/, open: MARKERS_WITHOUT_WORK },
  markers_of_stubs: { earns: BEST_INVALID, reason: /noSubmission/, open: MARKERS_WITHOUT_WORK },
  score_nan: { earns: BEST_INVALID, reason: /missing|not a number/ },
  score_infinite: { earns: BEST_INVALID, reason: /infinite|finite/ },
  score_overflow: { earns: WORST_VALID },
  score_negative_overflow: { earns: WORST_VALID },
  score_as_text: { earns: BEST_INVALID, reason: /not a number|missing/ },
  rows_repeated: { earns: BEST_INVALID, reason: /occurs more often/ },
  rows_left_out: { earns: BEST_INVALID, reason: /rows/ },
  rows_twice: { earns: BEST_INVALID, reason: /rows/ },
  writes_its_score: { earns: "same" },
  patches_the_grader: { earns: "same" },
  link_to_answers: { earns: BEST_INVALID, reason: /submission refused: symbolic link/ },
  leaves_before_grading: { earns: BEST_INVALID, reason: /noSubmission/ },
  crash_after_writing: { earns: BEST_INVALID, reason: /failed/ },
  heavy_to_grade: { earns: BEST_INVALID },
  sleeps: { earns: "same", weight: 1.1 },
  waits_in_threads: { earns: "same", weight: 1.1 },
  sleeps_until_the_end: { timeoutSeconds: 2, earns: BEST_INVALID, reason: /timedOut/, weight: 1.1 },
  burns: {
    earns: "same",
    open: "processor time that serves nothing gives weight, up to twice here, and no reward; durationWeighting Capped bounds it, Completion and Off give none",
  },
  burns_in_threads: {
    earns: "same",
    open: "as burns; several threads count no more than the seconds of the clock",
  },
  writes_modules: { earns: BEST_INVALID },
  honest: { after: "writes_modules", earns: { as: "honest" } },
};

/** The tasks, and the learner's part in them. */
export class Rewards {
  readonly #folder = mkdtempSync(join(tmpdir(), "longrun-rewards-"));
  readonly #tasks: Record<string, Task>;
  /** Rewards by program name, for programs that others are compared with. */
  readonly #earned = new Map<string, Earned>();

  constructor() {
    chmodSync(this.#folder, 0o755);
    this.#tasks = { double: this.#make("double", false), leaking: this.#make("leaking", true) };
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Public data, for an arena. */
  get inputs(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.#tasks).map(([name, task]) => [name, task.publicDirectory]));
  }

  /** @returns a line about the reward. @throws AssertionError if the program gained something */
  async tryCase(arena: Arena, name: string): Promise<{ verdict: string; reward: number; weight: number }> {
    const {
      after,
      beside,
      task = "double",
      timeoutSeconds = 20,
      earns,
      reason,
      guard,
      weight,
      open,
    } = REWARD_CASES[name]!;
    const guess = await this.#standing(arena, "guess");
    const expected = typeof earns === "object" ? await this.#standing(arena, earns.as) : guess;
    if (after) await this.#run(arena, after, "double", LIMITS);
    const run = () => this.#run(arena, name, task, { ...LIMITS, timeoutSeconds });
    const earned = beside ? await arena.beside(this.#text(beside, "double"), "double", run) : await run();
    arena.settled(earned.result);
    const { reward } = earned;
    const said = `reward ${reward.reward}, ${reward.reason}; ${earned.result.outcome} ${earned.result.detail} ${earned.result.terminalOutput.toString().slice(-500)}`;
    if (typeof earns === "number") assert.ok(reward.reward <= earns + 1e-9, said);
    else assert.equal(reward.reward, expected.reward.reward, said);
    if (reason) assert.match(reward.reason, reason, said);
    if (guard) assert.ok((reward.guards as string[]).includes(guard), said);
    const times = weightOver(earned, guess, WEIGHTS);
    if (weight !== undefined) assert.ok(times <= weight, `its duration weight is ${times} times that of guess`);
    if (open && typeof earns === "number")
      assert.ok(reward.reward > REWARDS.failureReward, `listed as open, and gained nothing: ${said}`);
    else if (open) {
      assert.ok(times > 1.1, `listed as open, and gained nothing: ${times}`);
      const wall = { ...earned.result, cpuSeconds: earned.result.durationSeconds };
      assert.ok(times <= weightOver({ ...earned, result: wall }, guess, WEIGHTS) + 1e-9, "more than the clock says");
      assert.equal(weightOver(earned, guess, { ...WEIGHTS, durationWeighting: "Completion" }), 1);
    }
    return { verdict: open ? "OPEN" : "no gain", reward: reward.reward, weight: times };
  }

  /** The environment that a program sees must not distinguish a graded execution from another one. */
  async samePlace(arena: Arena): Promise<void> {
    const seen = [];
    for (const seed of [1, 2])
      seen.push((await this.#run(arena, "finds_out_that_it_is_graded", "double", LIMITS, seed)).result);
    assert.match(seen[0]!.terminalOutput.toString(), /[0-9a-f]{64}\n$/);
    assert.equal(seen[0]!.terminalOutput.toString(), seen[1]!.terminalOutput.toString());
  }

  async #standing(arena: Arena, name: string): Promise<Earned> {
    const known = this.#earned.get(name) ?? (await this.#run(arena, name, "double", LIMITS));
    this.#earned.set(name, known);
    assert.ok(
      known.reward.valid,
      `${name}: ${known.reward.reason} ${known.result.detail} ${known.result.terminalOutput}`,
    );
    return known;
  }

  #text(name: string, task: string): string {
    const answers = join(this.#tasks[task]!.directory, "prepared/private/answers.csv");
    return readFileSync(join(import.meta.dirname, "reward", `${name}.py`), "utf8").replaceAll("@ANSWERS@", answers);
  }

  async #run(arena: Arena, name: string, task: string, limits: Limits, seed = 1): Promise<Earned> {
    const instrumented = instrument(this.#text(name, task));
    const nonce = randomBytes(16).toString("hex");
    const result = await arena.run(withNonce(instrumented, nonce), limits, { nonce, task, seed });
    const header = headerOf({ execution: name, number: 1, fence: "1" }, result, undefined, arena.column.level);
    const told = parseResult(header, instrumented.markers, limits, limits.timeoutSeconds + 60);
    assert.ok(told, `lost: ${result.detail}`);
    const accepted: AcceptedResult = { ...told, actor: "actor-0", attempt: 1, queueSeconds: 0 };
    const sample = {
      state: "finished",
      solution: "",
      insertedMarkers: instrumented.markers,
      result: accepted,
    } as const;
    return { result, reward: gradeSample(sample, result.submission, this.#tasks[task]!, REWARDS) };
  }

  /** Makes a task in which y is three times x, plus a little. With `leaks`, y is in the public test set. */
  #make(name: string, leaks: boolean): Task {
    const folder = join(this.#folder, name);
    for (const part of ["public", "private"]) mkdirSync(join(folder, "prepared", part), { recursive: true });
    const rows = (from: number, count: number) =>
      Array.from({ length: count }, (_, row) => {
        const x = (((row + 1) * 37) % 100) / 10;
        return { id: from + row, x, y: Number((3 * x + Math.sin(row)).toFixed(4)) };
      });
    const test = rows(101, 40);
    const csv = (head: string, lines: (string | number)[][]) =>
      `${[head, ...lines.map((line) => line.join())].join("\n")}\n`;
    const files = {
      "task.yaml": `name: ${name}
executionTimeoutSeconds: 20
grader:
  metric: MAE
  idColumn: id
  targetColumns: [y]
  direction: Lower
  rewardRange: { worst: 10, best: 0 }
  rewardFloor: ${WORST_VALID}
guardedRewardCap: ${CAP}
`,
      "prepared/public/description.md": "Predict y.\n",
      "prepared/public/train.csv": csv(
        "id,x,y",
        rows(1, 60).map(({ id, x, y }) => [id, x, y]),
      ),
      "prepared/public/test.csv": csv(
        leaks ? "id,x,y" : "id,x",
        test.map(({ id, x, y }) => (leaks ? [id, x, y] : [id, x])),
      ),
      "prepared/public/sample_submission.csv": csv(
        "id,y",
        test.map(({ id }, row) => [id, row % 7]),
      ),
      "prepared/private/answers.csv": csv(
        "id,y",
        test.map(({ id, y }) => [id, y]),
      ),
    };
    for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
    return openTask(folder);
  }
}

/** Returns, for a batch of the two, the weight of `one` divided by the weight of `other`. */
function weightOver(one: Earned, other: Earned, options: DurationOptions): number {
  const timed = ({ result }: Earned): TimedSample => ({
    ...{ outcome: result.outcome, durationSeconds: result.durationSeconds, cpuSeconds: result.cpuSeconds },
  });
  const [first, second] = durationWeights([timed(one), timed(other)], options);
  return first! / second!;
}
