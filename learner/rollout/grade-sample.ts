import type { Algorithm } from "../../crds/trainingrun.ts";
import { reasonOf } from "../grading/reasons.ts";
import { type Reward, type RewardFacts, rewardOf } from "../grading/reward.ts";
import type { Standing } from "../grading/reward-kinds.ts";
import type { Grade, Sample } from "../store/types.ts";
import type { Task } from "../tasks/task.ts";
import { parseSolution } from "./solution.ts";

type GradedFacts = Pick<Sample, "state" | "solution" | "insertedMarkers" | "result">;

/**
 * Returns grade and reward of a sample that is finished or was never executed.
 * @param submission the bytes from the actor; absent if there are none
 * @param standing what Rank and Improvement compare with. Absent: the standing of the first draft
 */
export function gradeSample(
  sample: GradedFacts,
  submission: Uint8Array | undefined,
  task: Task,
  constants: Pick<Algorithm, "failureReward" | "markerReward">,
  standing?: Standing,
): Grade & Reward {
  const reward = rewardOf(factsOf(sample, submission, task), constants, task.rewardRules, standing);
  if (reward === undefined) throw new Error("a lost execution has no reward");
  return reward;
}

function factsOf(sample: GradedFacts, submission: Uint8Array | undefined, task: Task): RewardFacts {
  const { insertedMarkers, result } = sample;
  if (result === undefined) {
    const parsed = parseSolution(sample.solution);
    const fault = "fault" in parsed ? parsed.fault : "notExecuted";
    return { fault, insertedMarkers, seenMarkers: [], forgedMarkers: 0 };
  }
  const { outcome, exitStatus, detail, forgedMarkers, submissionRefused: found } = result;
  const graded = () => {
    if (submission) return task.grade(Buffer.from(submission.buffer, submission.byteOffset, submission.length));
    // A submission exists but the actor did not read it: a link, a folder, or too large.
    return found === "" ? undefined : { valid: false, reason: reasonOf("submissionRefused", { found }), guards: [] };
  };
  return {
    outcome,
    exitStatus,
    detail,
    insertedMarkers,
    seenMarkers: result.markers.map(({ name }) => name),
    forgedMarkers,
    graded: outcome === "completed" ? graded() : undefined,
  };
}
