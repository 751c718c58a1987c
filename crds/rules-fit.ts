/** What must fit together in one TrainingRun, whatever it was before. Each rule is one of the CRD's in CEL. */
import type { Rule } from "./rules.ts";
import type {
  Algorithm,
  Grader,
  InitFrom,
  LearningRateSchedule,
  Model,
  ModelVolumeSource,
  Task,
  TrainingRun,
  TrainingRunSpec,
  VolumeSource,
  Webhook,
} from "./trainingrun.generated.ts";

const LOWER_IS_BETTER: Grader["metric"][] = ["MAE", "RMSE", "RMSLE", "MAPE", "LogLoss", "Brier"];
/** Graded as MLE-bench grades them. */
export const MLE_BENCH_TASKS = [
  "detecting-insults-in-social-commentary",
  "learning-agency-lab-automated-essay-scoring-2",
  "random-acts-of-pizza",
  "tweet-sentiment-extraction",
  "tabular-playground-series-may-2022",
  "tabular-playground-series-dec-2021",
  "us-patent-phrase-to-phrase-matching",
  "plant-pathology-2020-fgvc7",
  "leaf-classification",
  "nomad2018-predict-transparent-conductors",
  "spooky-author-identification",
  "lmsys-chatbot-arena",
];
const MARKERS = 7;
/** Of the bundled tasks' graders: the default. */
const BUNDLED_FLOOR = -9;

const given = (values: unknown[]): number => values.filter((value) => value !== undefined).length;

const grouped = ({ baseline }: Algorithm): boolean => baseline === "GRPO" || baseline === "RLOO";

const sourceRules = (at: string): Rule[] => [
  {
    at,
    fields: [],
    message: "give exactly one of path, persistentVolumeClaim and image",
    holds: (v: VolumeSource) => given([v.path, v.persistentVolumeClaim, v.image]) === 1,
  },
  {
    at,
    fields: ["path"],
    when: "cluster",
    message: "path works on one machine only; on Kubernetes give persistentVolumeClaim or image",
    holds: (v: VolumeSource) => v.path === undefined,
  },
  subPathRule(`${at}.persistentVolumeClaim.subPath`),
];

/** A subPath that Kubernetes accepts. */
export function subPathRule(at: string): Rule {
  return {
    at,
    fields: [],
    message:
      "subPath is a folder below the root of the volume, such as diamonds/public: no slash first or last, no . and no .. in it",
    holds: (subPath: string) => subPath === "" || !/\/\/|\/\.\/|\/\.\.\//.test(`/${subPath}/`),
  };
}

const SPEC: Rule[] = [
  {
    at: "",
    fields: ["metadata.name"],
    message:
      "names of pods and of a Service are made from metadata.name: give at most 40 lower-case letters, digits and hyphens, with a letter first and a letter or digit last",
    holds: ({ metadata }: TrainingRun) =>
      metadata.name.length <= 40 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(metadata.name),
  },
  {
    at: "",
    fields: ["spec.initFrom.run"],
    message: "initFrom.run is this run itself; name another TrainingRun of the namespace",
    holds: ({ metadata, spec }: TrainingRun) => spec.initFrom?.run !== metadata.name,
  },
  {
    at: "spec",
    fields: ["tasks"],
    message: "tasks holds one task for now; create a TrainingRun for each",
    holds: ({ tasks }: TrainingRunSpec) => tasks.length <= 1,
  },
  {
    at: "spec",
    fields: ["algorithm.miniBatchSize", "algorithm.batchSize"],
    message: "algorithm.miniBatchSize must divide algorithm.batchSize",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.batchSize % algorithm.miniBatchSize === 0,
  },
  {
    at: "spec",
    fields: ["algorithm.microBatchSize", "algorithm.miniBatchSize"],
    message: "algorithm.microBatchSize is at most algorithm.miniBatchSize; lower it",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.microBatchSize <= algorithm.miniBatchSize,
  },
  {
    at: "spec",
    fields: ["learner.compute", "learner.device"],
    message: "learner.compute TF32 and BFloat16 need a GPU; set learner.device to CUDA, or learner.compute to Float32",
    holds: ({ learner }: TrainingRunSpec) => learner.compute === "Float32" || learner.device === "CUDA",
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
    at: "spec",
    fields: ["algorithm.klCoefficient", "algorithm.klController"],
    message:
      "klController Adaptive multiplies klCoefficient, which therefore starts above 0; raise it or set klController to Fixed",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.klController === "Fixed" || algorithm.klCoefficient > 0,
  },
  {
    at: "spec",
    fields: ["algorithm.criticWarmupIterations", "algorithm.baseline"],
    message: "criticWarmupIterations needs baseline Critic; set it to 0 or change baseline",
    holds: ({ algorithm }: TrainingRunSpec) =>
      algorithm.criticWarmupIterations === 0 || algorithm.baseline === "Critic",
  },
  {
    at: "spec",
    fields: ["algorithm.lambda", "algorithm.baseline"],
    message: "lambda needs baseline Critic; set it to 1 or change baseline",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.lambda === 1 || algorithm.baseline === "Critic",
  },
  {
    at: "spec",
    fields: ["algorithm.gamma", "algorithm.baseline"],
    message: "baselines GRPO and RLOO compare whole samples and discount no token; set gamma to 1",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.gamma === 1 || !grouped(algorithm),
  },
  {
    at: "spec",
    fields: ["algorithm.groupSize", "algorithm.batchSize"],
    message: "a batch of baseline GRPO or RLOO holds whole groups: algorithm.groupSize must divide algorithm.batchSize",
    holds: ({ algorithm }: TrainingRunSpec) => !grouped(algorithm) || algorithm.batchSize % algorithm.groupSize === 0,
  },
  {
    at: "spec",
    fields: ["algorithm.groupSize", "model.generationBatchSize"],
    message: "the samples of a group are generated together: algorithm.groupSize is at most model.generationBatchSize",
    holds: ({ algorithm, model }: TrainingRunSpec) =>
      !grouped(algorithm) || algorithm.groupSize <= model.generationBatchSize,
  },
  {
    at: "spec",
    fields: ["algorithm.scaleByGroupStd", "algorithm.baseline"],
    message: "scaleByGroupStd belongs to baseline GRPO; remove it or change baseline",
    holds: ({ algorithm }: TrainingRunSpec) => algorithm.scaleByGroupStd || algorithm.baseline === "GRPO",
  },
  {
    at: "spec",
    fields: ["algorithm.klPlacement", "algorithm.scaleByGroupStd"],
    message:
      "in a group of equal rewards scaleByGroupStd would blow up the KL penalty: with baseline GRPO leave klPlacement at Loss, or set scaleByGroupStd to false",
    holds: ({ algorithm: a }: TrainingRunSpec) =>
      a.baseline !== "GRPO" || !a.scaleByGroupStd || a.klPlacement !== "Reward" || a.klCoefficient === 0,
  },
  {
    at: "spec",
    fields: ["algorithm.validScoreWeight", "algorithm.whitening", "algorithm.baseline"],
    message:
      "validScoreWeight counts standard deviations, which advantages have only once they are whitened or scaled by their group's; set it to 0 or whitening to Plain",
    holds: ({ algorithm: a }: TrainingRunSpec) =>
      a.validScoreWeight === 0 ||
      a.whitening === "Plain" ||
      a.whitening === "Weighted" ||
      (a.whitening === "Auto" && !grouped(a)) ||
      (a.baseline === "GRPO" && a.scaleByGroupStd),
  },
  {
    at: "spec",
    fields: ["algorithm.criticWarmupIterations", "stopping.iterations"],
    message: "the policy would never be trained: keep algorithm.criticWarmupIterations below stopping.iterations",
    holds: ({ algorithm, stopping }: TrainingRunSpec) => algorithm.criticWarmupIterations < stopping.iterations,
  },
  {
    at: "spec",
    fields: [
      "algorithm.learningRateSchedule.warmupIterations",
      "algorithm.criticWarmupIterations",
      "algorithm.learningRateSchedule.decayIterations",
      "stopping.iterations",
    ],
    message:
      "the learning rate would never be reached: keep learningRateSchedule.warmupIterations and criticWarmupIterations together below decayIterations, or stopping.iterations without it",
    holds: ({ algorithm, stopping }: TrainingRunSpec) => {
      const { warmupIterations, decayIterations } = algorithm.learningRateSchedule;
      if (warmupIterations === 0 && decayIterations === undefined) return true;
      return algorithm.criticWarmupIterations + warmupIterations < (decayIterations ?? stopping.iterations);
    },
  },
  {
    at: "spec.algorithm.learningRateSchedule",
    fields: ["type"],
    message: "minimumRatio and decayIterations belong to a decay; set type to Linear or Cosine",
    holds: (schedule: LearningRateSchedule) =>
      schedule.type !== "Constant" || (schedule.minimumRatio === 0 && schedule.decayIterations === undefined),
  },
  {
    at: "spec.algorithm.dualClip",
    fields: [],
    message: "algorithm.dualClip is 0 (off) or above 1, since it must not bind before the ratio itself; give 0 or 3",
    holds: (dualClip: number) => dualClip === 0 || dualClip > 1,
  },
  {
    at: "spec.notifications.webhook",
    fields: [],
    message: "give exactly one of url and urlFrom",
    holds: ({ url, urlFrom }: Webhook) => given([url, urlFrom]) === 1,
  },
  {
    at: "spec",
    fields: ["stopping.convergence.window", "stopping.iterations"],
    message: "convergence could never be seen: keep stopping.convergence.window at most stopping.iterations",
    holds: ({ stopping }: TrainingRunSpec) => (stopping.convergence?.window ?? 0) <= stopping.iterations,
  },
  {
    at: "spec",
    fields: ["evaluation.protocol", "evaluation.improve", "prompts.improveProbability"],
    message:
      "evaluation.protocol Equal divides evaluation.samples between both kinds of prompt; set evaluation.improve to true, or protocol to Paper",
    holds: ({ evaluation: { protocol, improve }, prompts }: TrainingRunSpec) =>
      protocol !== "Equal" || (improve ?? prompts.improveProbability > 0),
  },
  {
    at: "spec",
    fields: ["evaluation.samples", "evaluation.protocol"],
    message: "evaluation.protocol Equal gives each kind of prompt half of evaluation.samples; give an even number",
    holds: ({ evaluation: { samples, protocol } }: TrainingRunSpec) => protocol !== "Equal" || samples % 2 === 0,
  },
  {
    at: "spec",
    fields: ["learner.heartbeatSeconds", "learner.leaseSeconds"],
    message:
      "leases would end between two heartbeats: keep learner.heartbeatSeconds at most half of learner.leaseSeconds",
    holds: ({ learner }: TrainingRunSpec) => learner.heartbeatSeconds * 2 <= learner.leaseSeconds,
  },
  {
    at: "spec",
    fields: ["actors.min", "actors.max"],
    message: "actors.min is at most actors.max; raise max or lower min",
    holds: ({ actors }: TrainingRunSpec) => actors.min <= actors.max,
  },
  {
    at: "spec",
    fields: ["actors.replicas", "actors.autoscaling"],
    message:
      "actors.replicas (kubectl scale) needs actors.autoscaling External; under Demand longrun sets the number itself, between actors.min and actors.max",
    holds: ({ actors }: TrainingRunSpec) => actors.replicas === undefined || actors.autoscaling === "External",
  },
  {
    at: "spec",
    fields: ["actors.slots", "actors.isolation"],
    message: "actors.isolation Pod runs one execution per pod; set actors.slots to 1",
    holds: ({ actors }: TrainingRunSpec) => actors.isolation === "Container" || actors.slots === 1,
  },
  {
    at: "spec",
    fields: ["restart.backoffSeconds", "restart.maxBackoffSeconds"],
    message: "restart.backoffSeconds is at most restart.maxBackoffSeconds; lower it",
    holds: ({ restart }: TrainingRunSpec) => restart.backoffSeconds <= restart.maxBackoffSeconds,
  },
];

const TASK: Rule[] = [
  {
    at: "spec.tasks[]",
    fields: ["publicData", "privateData"],
    message: "publicData and privateData are given together, or neither for a bundled task",
    holds: (task: Task) => (task.publicData === undefined) === (task.privateData === undefined),
  },
  {
    at: "spec.tasks[]",
    fields: ["grader"],
    message: "a task with data of its own states how it is graded; give grader",
    holds: ({ name, publicData, grader }: Task) =>
      publicData === undefined || grader !== undefined || MLE_BENCH_TASKS.includes(name),
  },
  {
    at: "spec.tasks[]",
    fields: ["privateData.persistentVolumeClaim.subPath", "publicData.persistentVolumeClaim.subPath"],
    message:
      "actors mount publicData and could read the answers: on one claim keep privateData.subPath outside publicData.subPath",
    holds: ({ publicData, privateData }: Task) => {
      const [open, answers] = [publicData?.persistentVolumeClaim, privateData?.persistentVolumeClaim];
      if (!open || !answers || open.claimName !== answers.claimName) return true;
      return open.subPath !== "" && !`${answers.subPath}/`.startsWith(`${open.subPath}/`);
    },
  },
  {
    at: "spec.tasks[]",
    fields: ["privateData.image.reference"],
    message: "actors mount publicData and could read the answers: give publicData and privateData different images",
    holds: ({ publicData, privateData }: Task) =>
      !publicData?.image || publicData.image.reference !== privateData?.image?.reference,
  },
  {
    at: "spec.tasks[]",
    fields: ["keptOutputBytes", "outputBytes"],
    message: "keptOutputBytes (kept of the start and of the end) is at most half of outputBytes; lower it",
    holds: (task: Task) => task.keptOutputBytes * 2 <= task.outputBytes,
  },
  ...sourceRules("spec.tasks[].publicData"),
  ...sourceRules("spec.tasks[].privateData"),
  {
    at: "spec.tasks[].grader",
    fields: ["direction", "metric"],
    message: "direction contradicts metric; MAE, RMSE, RMSLE, MAPE, LogLoss and Brier are Lower, the others Higher",
    holds: ({ direction, metric }: Grader) => direction === (LOWER_IS_BETTER.includes(metric) ? "Lower" : "Higher"),
  },
  {
    at: "spec.tasks[].grader",
    fields: ["rewardRange.best", "rewardRange.worst", "direction"],
    message: "rewardRange.best must be better than rewardRange.worst in the sense of direction; exchange them",
    holds: ({ rewardRange: range, direction }: Grader) =>
      !range || (direction === "Lower" ? range.best < range.worst : range.best > range.worst),
  },
  {
    at: "spec.tasks[].grader",
    fields: ["bounds.least", "bounds.most"],
    message: "no prediction could be valid: keep bounds.least at most bounds.most",
    holds: ({ bounds }: Grader) => (bounds?.least ?? -Infinity) <= (bounds?.most ?? Infinity),
  },
  {
    at: "spec.tasks[].grader",
    fields: ["targetColumns", "idColumn"],
    message: "idColumn is not predicted; remove it from targetColumns",
    holds: ({ idColumn, targetColumns }: Grader) => !targetColumns.includes(idColumn),
  },
];

const MODEL: Rule[] = [
  {
    at: "spec.model",
    fields: ["policy"],
    when: "cluster",
    message:
      "model.policy is a folder, and on Kubernetes a folder lies on a volume; give model.volume, or name a bundled policy such as quickstart",
    holds: ({ volume, policy }: Model) => volume !== undefined || /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(policy),
  },
  {
    at: "spec.model",
    fields: ["policy"],
    message:
      "model.policy is a folder below the root of model.volume: no slash first or last and no .. in it (. is the root)",
    holds: ({ volume, policy }: Model) => volume === undefined || !/\/\/|\/\.\.\//.test(`/${policy}/`),
  },
  {
    at: "spec.model",
    fields: ["adaptation.type"],
    message: "adaptation.rank, alpha and targets need adaptation.type LoRA; remove them or change type",
    holds: ({ adaptation: a }: Model) => a.type === "LoRA" || given([a.rank, a.alpha, a.targets]) === 0,
  },
  {
    at: "spec.model",
    fields: ["adaptation.rank", "adaptation.type"],
    message: "adaptation.type LoRA needs adaptation.rank; give it, for example 16",
    holds: ({ adaptation }: Model) => adaptation.type !== "LoRA" || adaptation.rank !== undefined,
  },
  {
    at: "spec.model.volume",
    fields: [],
    message: "give exactly one of persistentVolumeClaim and image",
    holds: (v: ModelVolumeSource) => given([v.persistentVolumeClaim, v.image]) === 1,
  },
  subPathRule("spec.model.volume.persistentVolumeClaim.subPath"),
];

const INIT_FROM: Rule[] = [
  {
    at: "spec.initFrom",
    fields: [],
    message: "give exactly one of path and run",
    holds: ({ path, run }: InitFrom) => given([path, run]) === 1,
  },
  {
    at: "spec.initFrom",
    fields: ["path"],
    when: "cluster",
    message: "path works on one machine only; on Kubernetes give run",
    holds: ({ path }: InitFrom) => path === undefined,
  },
];

export const FIT_RULES: Rule[] = [...SPEC, ...TASK, ...MODEL, ...INIT_FROM];
