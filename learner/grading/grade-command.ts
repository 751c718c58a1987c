/**
 * Grades one submission: `node learner/grading/grade-command.ts --task DIR --submission FILE [--outcome OUTCOME]
 * [--exit-status N] [--inserted MARKERS] [--seen MARKERS] [--forged N]`.
 *
 * Prints one JSON object: `valid, score, reward, reason, creditedMarkers, clamped, guards`. Without a submission file
 * the program wrote none. MARKERS are comma separated. Exit codes: 0 graded, whatever came of it; 1 failed; 2 bad input.
 */
import { existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { TaskError } from "../tasks/errors.ts";
import { type RewardFacts, rewardOf } from "./reward.ts";
import { openTask } from "./task.ts";

/** The paper's constants (section 4.1): the defaults of `algorithm.failureReward` and `algorithm.markerReward`. */
const constants = { failureReward: -10, markerReward: 0.1 };
const outcomes = ["completed", "failed", "timedOut", "outOfMemory", "outputLimit", "lost"] as const;

function main(): number {
  try {
    const { values } = parseArgs({
      options: {
        task: { type: "string" },
        submission: { type: "string" },
        outcome: { type: "string", default: "completed" },
        "exit-status": { type: "string", default: "0" },
        inserted: { type: "string", default: "" },
        seen: { type: "string", default: "" },
        forged: { type: "string", default: "0" },
      },
    });
    if (!values.task) throw new TaskError("input", "--task is missing; give a prepared task folder");
    const outcome = outcomes.find((name) => name === values.outcome);
    if (!outcome) throw new TaskError("input", `--outcome ${values.outcome}: give one of ${outcomes.join(", ")}`);
    const task = openTask(values.task);
    const markers = (text: string) => text.split(",").filter((name) => name !== "");
    const facts: RewardFacts = {
      outcome,
      exitStatus: count(values["exit-status"], "--exit-status"),
      insertedMarkers: markers(values.inserted),
      seenMarkers: markers(values.seen),
      forgedMarkers: count(values.forged, "--forged"),
    };
    if (values.submission && existsSync(values.submission)) facts.graded = task.grade(readFileSync(values.submission));
    const reward = rewardOf(facts, constants, task.grader) ?? { reward: null, valid: false, reason: "lost" };
    console.log(JSON.stringify(reward));
    return 0;
  } catch (error) {
    console.error(`grade: ${(error as Error).message}`);
    const usage = /^ERR_PARSE_ARGS/.test((error as NodeJS.ErrnoException).code ?? "");
    return usage || error instanceof TaskError ? 2 : 1;
  }
}

function count(text: string, option: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new TaskError("input", `${option} ${text}: give a whole number`);
  return Number(text);
}

if (import.meta.main) process.exitCode = main();
