/** What cannot change while a TrainingRun exists, because the change could not be honoured. Each rule is one of the CRD's in CEL. */
import { isDeepStrictEqual } from "node:util";
import { parseQuantity } from "./quantity.ts";
import type { Rule } from "./rules.ts";
import { isSize } from "./rules-form.ts";
import type { TrainingRun, TrainingRunSpec } from "./trainingrun.generated.ts";

const GO_ON = "create a new TrainingRun, with initFrom to go on from this one's weights";

/** A field that always has a value, by its default or because it is required. */
function fixed(at: string, name: string, why = ""): Rule {
  return {
    at,
    fields: [],
    when: "change",
    message: `${name} cannot change while the run exists${why}; ${GO_ON}`,
    holds: (now: unknown, before: unknown) => isDeepStrictEqual(now, before),
  };
}

/** A field that may be absent; to add or remove it is a change too. */
function fixedOptional(at: string, field: string, message: string): Rule {
  const holds = (now: Record<string, unknown>, before: Record<string, unknown>): boolean =>
    isDeepStrictEqual(now[field], before[field]);
  return { at, fields: [field], when: "change", message, holds };
}

const INSTRUMENTED = ": rewards of failed programs would mean something else";
const SAMPLED = ": solutions under way were sampled with it";
const STORED = ": stored samples may be longer";
const REWARDS = ": stored rewards would not compare";

/** A finished run has used these; what is left to change is how long it and its volume stay. */
const RESULTS = ["tasks", "model", "prompts", "algorithm", "evaluation", "stopping"] as const;

export const CHANGE_RULES: Rule[] = [
  {
    at: "",
    fields: ["spec"],
    when: "change",
    message: `the run is finished, so its tasks, model, prompts, algorithm, evaluation and stopping cannot change; ${GO_ON}`,
    holds: ({ spec }: TrainingRun, before: TrainingRun) =>
      !["Succeeded", "Failed"].includes(before.status?.phase ?? "") ||
      RESULTS.every((field) => isDeepStrictEqual(spec[field], before.spec[field])),
  },
  {
    at: "spec",
    fields: ["tasks"],
    when: "change",
    message: `tasks cannot be added, removed or renamed while the run exists; ${GO_ON}`,
    holds: ({ tasks }: TrainingRunSpec, before: TrainingRunSpec) =>
      isDeepStrictEqual(
        tasks.map(({ name }) => name),
        before.tasks.map(({ name }) => name),
      ),
  },
  ...(["description", "publicData", "privateData"] as const).map((field) =>
    fixedOptional(
      "spec.tasks[]",
      field,
      `${field}${field === "description" ? " of a task" : ""} cannot change while the run exists; ${GO_ON}`,
    ),
  ),
  fixedOptional(
    "spec.tasks[]",
    "grader",
    `grader cannot change while the run exists: earlier scores would mean something else; ${GO_ON}`,
  ),
  fixed("spec.tasks[].rewardSplit", "rewardSplit", ": earlier rewards would mean something else"),
  fixedOptional(
    "spec.tasks[]",
    "guardedRewardCap",
    `guardedRewardCap cannot change while the run exists: earlier rewards would mean something else; ${GO_ON}`,
  ),

  fixed("spec.model.policy", "model.policy"),
  fixedOptional("spec.model", "volume", `model.volume cannot change while the run exists; ${GO_ON}`),
  fixed("spec.model.adaptation", "model.adaptation", ": checkpoints would not fit"),
  fixed("spec.model.instrumenter", "model.instrumenter", INSTRUMENTED),
  fixed("spec.model.instrumenterMaxPromptTokens", "model.instrumenterMaxPromptTokens", INSTRUMENTED),
  fixed("spec.model.instrumenterMaxResponseTokens", "model.instrumenterMaxResponseTokens", INSTRUMENTED),
  fixed("spec.model.temperature", "model.temperature", SAMPLED),
  fixed("spec.model.topP", "model.topP", SAMPLED),
  fixed("spec.model.maxPromptTokens", "model.maxPromptTokens", STORED),
  fixed("spec.model.maxResponseTokens", "model.maxResponseTokens", STORED),
  fixed(
    "spec.prompts.style",
    "prompts.style",
    ": the evaluations before and after would differ in more than the policy",
  ),

  fixed("spec.algorithm.collection", "algorithm.collection", ": executions under way were started for it"),
  fixed("spec.algorithm.baseline", "algorithm.baseline", ": checkpoints hold a critic or none"),
  fixed("spec.algorithm.groupSize", "algorithm.groupSize", ": groups under way were dispatched with it"),
  fixed("spec.algorithm.gamma", "algorithm.gamma", ": the critic has learned it"),
  fixed("spec.algorithm.klController", "algorithm.klController", ": checkpoints hold its state"),
  fixed("spec.algorithm.durationClock", "algorithm.durationClock", ": stored durations would not compare"),
  fixed("spec.algorithm.failureReward", "algorithm.failureReward", REWARDS),
  fixed("spec.algorithm.markerReward", "algorithm.markerReward", REWARDS),

  {
    at: "spec.learner.storage.size",
    fields: [],
    when: "change",
    message: "learner.storage.size cannot shrink; give the present size or more",
    holds: (now: string, before: string) =>
      !isSize(now) || !isSize(before) || parseQuantity(now) >= parseQuantity(before),
  },
  fixedOptional(
    "spec.learner.storage",
    "className",
    `learner.storage.className cannot change while the run exists: a volume stays where it is; ${GO_ON}`,
  ),
  fixed("spec.learner.storage.accessMode", "learner.storage.accessMode", ": a volume stays as it is"),

  fixed("spec.seed", "seed"),
  fixedOptional(
    "spec",
    "initFrom",
    "initFrom is used once, when the run starts, and cannot change while the run exists; create a new TrainingRun",
  ),
  fixedOptional(
    "spec",
    "managedBy",
    "managedBy cannot change while the run exists: two controllers would take it for theirs; create a new TrainingRun",
  ),
  {
    at: "spec",
    fields: ["queueName"],
    when: "change",
    message: "queueName can change only while the run is suspended; set suspend to true first",
    holds: (now: TrainingRunSpec, before: TrainingRunSpec) =>
      now.queueName === before.queueName || (now.suspend && before.suspend),
  },
];
