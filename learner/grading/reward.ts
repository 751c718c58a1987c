import type { Algorithm, Grader, Task } from "../../crds/trainingrun.ts";
import type { Outcome } from "../../proto/execution.ts";
import { FAILURE_STEPS, failureStepOf } from "./failure-steps.ts";
import type { Graded } from "./grade.ts";
import { earnedReward, type KindRules, noStanding, type Standing } from "./reward-kinds.ts";

export interface RewardFacts {
  /** Why the solution was never executed. Absent: it was executed. */
  fault?: string | undefined;
  outcome?: Outcome | undefined;
  exitStatus?: number | undefined;
  /** The actor's words on the outcome. */
  detail?: string | undefined;
  /** Markers that the instrumenter put into the program. */
  insertedMarkers: readonly string[];
  /** Markers that the program printed with the right nonce. */
  seenMarkers: readonly string[];
  /** Marker lines with a wrong nonce, or with markers that were never inserted. */
  forgedMarkers: number;
  graded?: Graded | undefined;
}

type RewardConstants = Pick<Algorithm, "failureReward" | "markerReward">;

/** The paper's constants (section 4.1), also the defaults of `algorithm`. */
export const paperRewards: RewardConstants = { failureReward: -10, markerReward: 0.1 };

export type RewardRules = KindRules & Pick<Grader, "rewardFloor"> & Pick<Task, "guardedRewardCap" | "failureRewards">;

export interface Reward extends Omit<Graded, "reason"> {
  reward: number;
  /** `valid`, the solution's fault, the outcome, `noSubmission`, or the submission's fault. */
  reason: string;
  /** Markers that earned credit. A valid submission earns none: its score replaces the credit. */
  creditedMarkers: string[];
  /** The reward was raised to the grader's `rewardFloor`, because the score was too bad. */
  clamped: boolean;
  /** A guard flagged the submission, so the reward was lowered to the task's `guardedRewardCap`. */
  capped: boolean;
}

/** Most markers that a program can earn: Appendix C.3 has seven. */
const markerCount = 7;

/**
 * Computes one sample's reward, paper sections 3.2 and 4.1: `failureReward`, or the task's reward for the step that it reached, plus
 * `markerReward` for each reached marker, or, for a valid submission, what `earnedReward` gives for its score. Only a program with exit status
 * 0 is graded.
 * @returns undefined for `lost`: an infrastructure failure has no reward and is not trained on
 */
export function rewardOf(
  facts: RewardFacts,
  constants: RewardConstants,
  rules: RewardRules,
  standing: Standing = noStanding,
): Reward | undefined {
  if (facts.outcome === "lost") return undefined;
  const { failureReward, markerReward } = constants;
  const step = () => failureStepOf({ ...facts, hasSubmission: facts.graded !== undefined });
  const without = (reason: string, creditedMarkers: string[]): Reward => ({
    reward: (rules.failureRewards?.[step()] ?? failureReward) + markerReward * creditedMarkers.length,
    valid: false,
    reason,
    creditedMarkers,
    clamped: false,
    capped: false,
    guards: [],
  });
  if (facts.fault !== undefined) return without(facts.fault, []);
  if (facts.outcome === undefined) throw new Error("a sample that was executed has an outcome");

  const credited = creditedMarkers(facts);
  if (facts.outcome !== "completed") return without(facts.outcome, credited);
  if (facts.exitStatus !== 0) return without("failed", credited);
  const { graded } = facts;
  if (graded === undefined) return without("noSubmission", credited);
  if (!graded.valid || graded.score === undefined || !Number.isFinite(graded.score))
    return without(graded.valid ? "the score is not a finite number" : graded.reason.message, credited);
  const earned = earnedReward(graded.score, rules, standing);
  const cap = graded.guards.length > 0 ? (rules.guardedRewardCap ?? Infinity) : Infinity;
  return {
    ...graded,
    reward: Math.max(Math.min(earned, cap), rules.rewardFloor),
    reason: "valid",
    creditedMarkers: [],
    clamped: earned < rules.rewardFloor,
    capped: earned > cap,
  };
}

/** Returns the markers with credit. Each inserted marker counts once. One forgery costs all credit, so that trying is never worth it. */
function creditedMarkers(facts: RewardFacts): string[] {
  if (facts.forgedMarkers > 0) return [];
  return [...new Set(facts.insertedMarkers)].filter((marker) => facts.seenMarkers.includes(marker));
}

/** Returns one line that names fields to change, if an invalid reward could be as high as a valid one. */
export function rewardOrderFault(
  constants: RewardConstants,
  rules: Pick<RewardRules, "rewardFloor" | "failureRewards">,
): string | undefined {
  const { failureRewards = {}, rewardFloor } = rules;
  const credit = Math.max(0, markerCount * constants.markerReward);
  const steps = FAILURE_STEPS.flatMap((step): [field: string, reward: number][] => {
    const own = failureRewards[step];
    return own === undefined ? [] : [[`failureRewards.${step}`, own]];
  });
  const rest: typeof steps =
    steps.length < FAILURE_STEPS.length ? [["algorithm.failureReward", constants.failureReward]] : [];
  const [field, best] = [...rest, ...steps].reduce((a, b) => (b[1] > a[1] ? b : a));
  if (best + credit < rewardFloor) return undefined;
  return (
    `grader.rewardFloor is ${rewardFloor}, but a program without a valid submission can earn ` +
    `${best + credit} (${field} and ${markerCount} times algorithm.markerReward); raise rewardFloor or lower these`
  );
}
