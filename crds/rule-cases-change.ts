/** Cases of the rules for changes to a run that exists. */
import { CUSTOM, claims, fromHub, fromOci, fromS3, GRADER, HUB, type RuleCase } from "./rule-case.ts";

/** A field that cannot change: from its default to `value`; what can change beside it is accepted. */
const fixed = (at: string, value: string, before: string[] = []): RuleCase => ({
  at: `spec.${at}`,
  message: `${at.replace("tasks[].", "")} cannot change while the run exists`,
  before,
  refused: [...before, `${at.replace("[]", "[0]")}=${value}`],
  accepted: [
    ...before,
    "algorithm.learningRate=0.001",
    "tasks[0].executionTimeoutSeconds=30",
    "model.generationBatchSize=4",
  ],
});

/** Adding, removing and changing a field that may be absent are each refused. */
function fixedOptional(
  at: string,
  field: string,
  message: string,
  values: [string, string],
  around: string[] = [],
): RuleCase[] {
  const path = `${`${at.replace("spec", "").replace("[]", "[0]")}.`.replace(/^\./, "")}${field}`;
  const [first, second] = values.map((value) => [...around, `${path}=${value}`]);
  return [
    { at, message, before: around, refused: first!, accepted: [...around, "suspend=true"] },
    { at, message, before: first!, refused: around, accepted: [...first!, "stopping.iterations=7"] },
    { at, message, before: first!, refused: second!, accepted: first! },
  ];
}
export const CHANGE_CASES: RuleCase[] = [
  ...(["Succeeded", "Failed"] as const).flatMap((phase) =>
    [
      "tasks[0].processes=8",
      "model.generationBatchSize=4",
      "prompts.dataSnippetRows=1",
      "algorithm.learningRate=0.1",
      "evaluation.samples=1",
      "stopping.iterations=200",
    ].map((refused) => ({
      at: "",
      message: "the run is finished",
      before: [],
      phase,
      refused: [refused],
      accepted: ["ttlSecondsAfterFinished=0", "learner.storage.retain=Never", "actors.max=4"],
    })),
  ),
  {
    at: "spec",
    message: "tasks can be added, removed or renamed only while",
    before: ["suspend=true"],
    phase: "Running",
    refused: ["suspend=false", "tasks[1].name=wage"],
    accepted: ["suspend=true", "tasks[1].name=wage"],
  },
  ...fixedOptional("spec.tasks[]", "description", "description of a task cannot change", ["a", "b"]),
  {
    at: "spec.tasks[]",
    message: "publicData cannot change",
    before: [CUSTOM],
    refused: [claims("claimName: open, subPath: new", "claimName: answers")],
    accepted: [claims('claimName: open, subPath: ""', "claimName: answers")],
  },
  {
    at: "spec.tasks[]",
    message: "privateData cannot change",
    before: [CUSTOM],
    refused: [claims("claimName: open", "claimName: new")],
    accepted: [CUSTOM, "tasks[0].executionMemoryBytes=8589934592"],
  },
  ...fixedOptional("spec.tasks[]", "grader", "grader cannot change", [
    `{${GRADER}}`,
    "{metric: RMSE, idColumn: id, targetColumns: [price], direction: Lower}",
  ]),
  { ...fixed("tasks[].rewardSplit", "Half"), at: "spec.tasks[]" },
  // A default of a list item may be stored or absent: an earlier CRD stored it.
  {
    at: "spec.tasks[]",
    message: "rewardSplit cannot change",
    before: ["tasks[0].rewardSplit=Half"],
    refused: [],
    accepted: ["tasks[0].rewardSplit=Half"],
  },
  {
    at: "spec.tasks[]",
    message: "rewardSplit cannot change",
    before: ["tasks[0].rewardSplit=Full"],
    refused: ["tasks[0].rewardSplit=Half"],
    accepted: [],
  },
  { ...fixed("tasks[].privateShare", "0.5"), at: "spec.tasks[]" },
  {
    at: "spec.tasks[]",
    message: "privateShare cannot change",
    before: ["tasks[0].privateShare=0"],
    refused: ["tasks[0].privateShare=0.25"],
    accepted: [],
  },
  {
    at: "spec.tasks[]",
    message: "privateShare cannot change",
    before: ["tasks[0].privateShare=0.5"],
    refused: [],
    accepted: ["tasks[0].privateShare=0.5"],
  },
  {
    at: "spec.tasks[]",
    message: "grader cannot change",
    before: [`tasks[0].grader={${GRADER}, rewardFloor: -9}`],
    refused: [`tasks[0].grader={${GRADER}, rewardFloor: -8}`],
    accepted: [`tasks[0].grader={${GRADER}}`],
  },
  ...fixedOptional("spec.tasks[]", "guardedRewardCap", "guardedRewardCap cannot change", ["0", "0.5"]),
  ...fixedOptional("spec.tasks[]", "reward", "reward cannot change", ["Rank", "Improvement"]),
  ...fixedOptional(
    "spec.tasks[]",
    "medals",
    "medals cannot change",
    ["{gold: 1, silver: 2, bronze: 3}", "{gold: 1, silver: 2, bronze: 4}"],
    ["tasks[0].reward=Medal"],
  ),
  ...fixedOptional(
    "spec.tasks[]",
    "medalRewards",
    "medalRewards cannot change",
    [
      "{gold: 1, silver: 0.8, bronze: 0.6, median: 0.2, none: 0}",
      "{gold: 1, silver: 0.8, bronze: 0.6, median: 0.2, none: -1}",
    ],
    ["tasks[0].reward=Medal"],
  ),
  ...fixedOptional("spec.tasks[]", "failureRewards", "failureRewards cannot change", [
    "{failed: -11}",
    "{failed: -12}",
  ]),
  ...fixedOptional("spec.prompts", "answerPrefix", "prompts.answerPrefix cannot change", ["a", "b"]),
  ...fixedOptional("spec.prompts", "examples", "prompts.examples cannot change", [
    "[{user: a, assistant: b}]",
    "[{user: a, assistant: c}]",
  ]),
  fixed("model.policy", "other"),
  ...fixedOptional("spec.model", "volume", "model.volume cannot change", [
    "{image: {reference: a}}",
    "{image: {reference: b}}",
  ]),
  ...[
    ["repo", "repo: a/c, revision: v1"],
    ["revision", "repo: a/b, revision: v2"],
  ].map(([field, changed]) => ({
    at: `spec.model.source.huggingFace.${field}`,
    message: `model.source's ${field} cannot change`,
    before: [fromHub("repo: a/b, revision: v1")],
    refused: [fromHub(changed!)],
    accepted: [
      fromHub("repo: a/b, revision: v1, secretRef: {name: longrun-hub}"),
      fromHub("repo: a/b, revision: v1, endpoint: https://hub.test"),
    ],
  })),
  {
    at: "spec.model.source.s3.bucket",
    message: "model.source's bucket cannot change",
    before: [fromS3("bucket: abc, prefix: a")],
    refused: [fromS3("bucket: abd, prefix: a")],
    accepted: [
      fromS3("bucket: abc, prefix: a, region: eu-1, endpoint: https://s3.test, secretRef: {name: longrun-s3}"),
    ],
  },
  ...["bucket: abc", "bucket: abc, prefix: b"].map((changed) => ({
    at: "spec.model.source.s3",
    message: "model.source's prefix cannot change",
    before: [fromS3("bucket: abc, prefix: a")],
    refused: [fromS3(changed)],
    accepted: [fromS3("bucket: abc, prefix: a, serviceAccountName: longrun-s3")],
  })),
  ...[`model={source: ${HUB}}`, fromOci("reference: h/a:b")].map((changed) => ({
    at: "spec.model.source",
    message: "model.source cannot become another kind of source",
    before: [fromS3("bucket: abc")],
    refused: [changed],
    accepted: [fromS3("bucket: abc")],
  })),
  {
    at: "spec.model.source.oci.reference",
    message: "model.source's reference cannot change",
    before: [fromOci("reference: h/a:b")],
    refused: [fromOci("reference: h/a:c")],
    accepted: [fromOci("reference: h/a:b, secretRef: {name: longrun-oci}")],
  },
  {
    at: "spec.model",
    message: "model.source cannot be added or removed",
    before: [],
    refused: [`model={source: ${HUB}}`],
    accepted: ["model={policy: quickstart}"],
  },
  fixed("model.adaptation", "{type: LoRA, rank: 8}"),
  fixed("model.adaptation", "{type: LoRA, rank: 8}", ["model.adaptation={type: LoRA, rank: 16}"]),
  fixed("model.instrumenter", "None"),
  fixed("model.instrumenterMaxPromptTokens", "512"),
  fixed("model.instrumenterMaxResponseTokens", "1024"),
  fixed("model.temperature", "0.8"),
  fixed("model.topP", "0.9"),
  fixed("model.maxPromptTokens", "512"),
  fixed("model.maxResponseTokens", "2048"),
  fixed("prompts.style", "Short"),
  fixed("algorithm.collection", "Discard"),
  fixed("algorithm.baseline", "BatchMean"),
  fixed("algorithm.groupSize", "16"),
  fixed("algorithm.gamma", "0.99"),
  fixed("algorithm.durationClock", "Wall"),
  fixed("algorithm.failureReward", "-11"),
  fixed("algorithm.markerReward", "0"),
  {
    at: "spec.learner.storage.size",
    message: "learner.storage.size cannot shrink",
    before: ["learner.storage.size=100Gi"],
    refused: ["learner.storage.size=102399Mi"],
    accepted: ["learner.storage.size=0.2Ti"],
  },
  ...fixedOptional("spec.learner.storage", "className", "learner.storage.className cannot change", ["fast", "slow"]),
  fixed("learner.storage.accessMode", "ReadWriteOncePod"),
  fixed("seed", "1"),
  ...fixedOptional("spec", "initFrom", "initFrom is used once", ["{run: a}", "{run: a, iteration: 2}"]),
  ...fixedOptional("spec", "warmStart", "warmStart is used once", [
    "{data: {configMap: {name: a}}}",
    "{data: {configMap: {name: a}}, epochs: 4}",
  ]),
  ...fixedOptional("spec", "managedBy", "managedBy cannot change", ["example.com/one", "example.com/two"]),
  {
    at: "spec",
    message: "queueName can change only while the run is suspended",
    before: ["queueName=a"],
    refused: ["queueName=b"],
    accepted: ["queueName=a"],
  },
  {
    at: "spec",
    message: "queueName can change only while the run is suspended",
    before: ["queueName=a", "suspend=true"],
    refused: ["queueName=b", "suspend=false"],
    accepted: ["queueName=b", "suspend=true"],
  },
];
