/**
 * Rules that cross fields. On Kubernetes the API server enforces them as CEL (`x-kubernetes-validations` in the CRD);
 * here they are once more for runs without a cluster. A test keeps the two tables equal by their messages.
 */
import type {
  Actors,
  Adaptation,
  Grader,
  InitFrom,
  Learner,
  Restart,
  Task,
  TrainingRunSpec,
  VolumeSource,
} from "./trainingrun.generated.ts";

export interface Rule {
  /** Path of the object that the rule looks at; `[]` stands for every item of a list. */
  at: string;
  /** Fields below it whose values an error shows; the first one that is there gives the line. */
  fields: string[];
  message: string;
  holds(object: never): boolean;
}

const LOWER_IS_BETTER: Grader["metric"][] = ["MAE", "RMSE", "LogLoss"];
const MARKERS = 7;
/** Of the bundled tasks' graders: the default. */
const BUNDLED_FLOOR = -9;

const oneSource: Omit<Rule, "at"> = {
  fields: [],
  message: "give exactly one of path, persistentVolumeClaim and image",
  holds: (v: VolumeSource) =>
    [v.path, v.persistentVolumeClaim, v.image].filter((source) => source !== undefined).length === 1,
};

export const RULES: Rule[] = [
  {
    at: "spec",
    fields: [],
    message: "tasks holds one task for now",
    holds: (spec: TrainingRunSpec) => spec.tasks.length <= 1,
  },
  {
    at: "spec",
    fields: ["algorithm.miniBatchSize", "algorithm.batchSize"],
    message: "algorithm.miniBatchSize must divide algorithm.batchSize",
    holds: (spec: TrainingRunSpec) => spec.algorithm.batchSize % spec.algorithm.miniBatchSize === 0,
  },
  {
    at: "spec",
    fields: ["algorithm.microBatchSize", "algorithm.miniBatchSize"],
    message: "algorithm.microBatchSize is at most algorithm.miniBatchSize",
    holds: (spec: TrainingRunSpec) => spec.algorithm.microBatchSize <= spec.algorithm.miniBatchSize,
  },
  {
    at: "spec",
    fields: ["algorithm.failureReward", "algorithm.markerReward"],
    message:
      "a failed program with all markers must earn less than any valid one: keep algorithm.failureReward + 7 * algorithm.markerReward below grader.rewardFloor",
    holds: ({ algorithm, tasks }: TrainingRunSpec) =>
      tasks.every(
        ({ grader }) =>
          algorithm.failureReward + MARKERS * algorithm.markerReward < (grader?.rewardFloor ?? BUNDLED_FLOOR),
      ),
  },
  {
    at: "spec.tasks[]",
    fields: ["publicData", "privateData"],
    message: "publicData and privateData are given together, or neither for a bundled task",
    holds: (task: Task) => (task.publicData === undefined) === (task.privateData === undefined),
  },
  {
    at: "spec.tasks[]",
    fields: ["privateData.persistentVolumeClaim.claimName", "privateData.persistentVolumeClaim.subPath"],
    message: "publicData and privateData on one claim need different subPaths, so that actors cannot mount the answers",
    holds: (task: Task) => {
      const [open, answers] = [task.publicData?.persistentVolumeClaim, task.privateData?.persistentVolumeClaim];
      return !open || !answers || open.claimName !== answers.claimName || open.subPath !== answers.subPath;
    },
  },
  {
    at: "spec.tasks[]",
    fields: ["keptOutputBytes", "outputBytes"],
    message: "keptOutputBytes (kept of the start and of the end) is at most half of outputBytes",
    holds: (task: Task) => task.keptOutputBytes * 2 <= task.outputBytes,
  },
  { at: "spec.tasks[].publicData", ...oneSource },
  { at: "spec.tasks[].privateData", ...oneSource },
  {
    at: "spec.tasks[].grader",
    fields: ["direction", "metric"],
    message: "direction contradicts metric (MAE, RMSE and LogLoss are Lower, the others Higher)",
    holds: (grader: Grader) => grader.direction === (LOWER_IS_BETTER.includes(grader.metric) ? "Lower" : "Higher"),
  },
  {
    at: "spec.tasks[].grader",
    fields: ["rewardRange.best", "rewardRange.worst", "direction"],
    message: "rewardRange.best must be better than rewardRange.worst in the sense of direction",
    holds: ({ rewardRange: range, direction }: Grader) =>
      !range || (direction === "Lower" ? range.best < range.worst : range.best > range.worst),
  },
  {
    at: "spec.model.adaptation",
    fields: ["type"],
    message: "rank, alpha and targets need type LoRA",
    holds: (a: Adaptation) => a.type === "LoRA" || (a.rank ?? a.alpha ?? a.targets) === undefined,
  },
  {
    at: "spec.model.adaptation",
    fields: ["type"],
    message: "type LoRA needs rank",
    holds: (a: Adaptation) => a.type !== "LoRA" || a.rank !== undefined,
  },
  {
    at: "spec.learner",
    fields: ["resources.limits"],
    message: "the learner uses one GPU or none",
    holds: (learner: Learner) => ["0", "1"].includes(String(learner.resources.limits?.["nvidia.com/gpu"] ?? 0)),
  },
  {
    at: "spec.actors",
    fields: ["min", "max"],
    message: "min is at most max",
    holds: (actors: Actors) => actors.min <= actors.max,
  },
  {
    at: "spec.actors",
    fields: ["replicas", "autoscaling"],
    message: "replicas needs autoscaling External",
    holds: (actors: Actors) => actors.replicas === undefined || actors.autoscaling === "External",
  },
  {
    at: "spec.actors",
    fields: ["isolation", "slots"],
    message: "isolation Pod runs one execution per pod; set slots to 1",
    holds: (actors: Actors) => actors.isolation === "Container" || actors.slots === 1,
  },
  {
    at: "spec.restart",
    fields: ["backoffSeconds", "maxBackoffSeconds"],
    message: "backoffSeconds is at most maxBackoffSeconds",
    holds: (restart: Restart) => restart.backoffSeconds <= restart.maxBackoffSeconds,
  },
  {
    at: "spec.initFrom",
    fields: ["path", "run"],
    message: "give exactly one of path and run",
    holds: (from: InitFrom) => (from.path === undefined) !== (from.run === undefined),
  },
];

export interface BrokenRule {
  rule: Rule;
  /** Path of the object, e.g. `['spec', 'tasks', 0]`. */
  path: (string | number)[];
  object: unknown;
}

/** Checks a value that the schema accepts; @returns the rules that do not hold. */
export function brokenRules(value: unknown, rules: Rule[] = RULES): BrokenRule[] {
  return rules.flatMap((rule) =>
    objectsAt(value, rule.at.split("."), [])
      .filter(({ object }) => !rule.holds(object as never))
      .map(({ object, path }) => ({ rule, path, object })),
  );
}

function objectsAt(
  value: unknown,
  segments: string[],
  path: (string | number)[],
): { object: unknown; path: (string | number)[] }[] {
  if (value === undefined) return [];
  const [segment, ...rest] = segments;
  if (segment === undefined) return [{ object: value, path }];
  const name = segment.replace("[]", "");
  const child = (value as Record<string, unknown>)[name];
  if (!segment.endsWith("[]")) return objectsAt(child, rest, [...path, name]);
  return (child as unknown[]).flatMap((item, index) => objectsAt(item, rest, [...path, name, index]));
}
