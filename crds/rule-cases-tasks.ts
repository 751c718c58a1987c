/** Cases of the rules for tasks: where their data lie, and how they are graded. */
import { claims, GRADER, type RuleCase } from "./rule-case.ts";

const images = (publicData: string, privateData: string): string =>
  `tasks=[{name: diamonds, grader: {${GRADER}}, publicData: {image: {reference: ${publicData}}}, privateData: {image: {reference: ${privateData}}}}]`;
const sources = (publicData: string, privateData: string): string =>
  `tasks=[{name: diamonds, grader: {${GRADER}}, publicData: ${publicData}, privateData: ${privateData}}]`;
/** Two tasks with data of their own: the public data of the first, and the answers of the second. */
const secondTask = (publicData: string, privateData: string): string =>
  `tasks=[{name: one, grader: {${GRADER}}, publicData: ${publicData}, privateData: {image: {reference: c}}}, ` +
  `{name: two, grader: {${GRADER}}, publicData: {image: {reference: d}}, privateData: ${privateData}}]`;
const MEDALS = "{gold: 280, silver: 300, bronze: 340}";
const grader = (text: string): string => `tasks[0].grader={${text}}`;

/** Returns the cases of the public or of the private data, which have the same rules. */
function sourceCases(field: "publicData" | "privateData"): RuleCase[] {
  const at = `spec.tasks[].${field}`;
  const source = (text: string): string =>
    field === "publicData" ? sources(text, "{image: {reference: b}}") : sources("{image: {reference: b}}", text);
  const subPath = (text: string): string => source(`{persistentVolumeClaim: {claimName: a, subPath: "${text}"}}`);
  const one = "give exactly one of path, persistentVolumeClaim and image";
  const form = "subPath is a folder below the root of the volume";
  return [
    { at, message: one, refused: [source("{}")], accepted: [source("{image: {reference: c}}")] },
    {
      at,
      message: one,
      refused: [source("{image: {reference: c}, persistentVolumeClaim: {claimName: c}}")],
      accepted: [source("{persistentVolumeClaim: {claimName: c}}")],
    },
    {
      at,
      message: "path works on one machine only; on Kubernetes give persistentVolumeClaim or image",
      refused: [source("{path: data}")],
      accepted: [source("{persistentVolumeClaim: {claimName: c}}")],
    },
    ...["/data", "data/", "a//b", "..", "../b", "a/..", "a/../b", ".", "a/./b", "/"].map((bad) => ({
      at: `${at}.persistentVolumeClaim.subPath`,
      message: form,
      refused: [subPath(bad)],
      accepted: [subPath("a/b..c/.d")],
    })),
  ];
}

export const TASK_CASES: RuleCase[] = [
  {
    at: "spec",
    message: "all tasks of a run share one sandbox",
    refused: ["tasks[1]={name: wage, sandboxImage: other}", "actors.sandboxImage=ours"],
    accepted: ["tasks[1]={name: wage, sandboxImage: ours}", "actors.sandboxImage=ours"],
  },
  {
    at: "spec",
    message: "actors mount the publicData of every task",
    refused: [
      secondTask(
        "{persistentVolumeClaim: {claimName: open}}",
        "{persistentVolumeClaim: {claimName: open, subPath: b}}",
      ),
    ],
    accepted: [
      secondTask(
        "{persistentVolumeClaim: {claimName: open}}",
        "{persistentVolumeClaim: {claimName: answers, subPath: b}}",
      ),
    ],
  },
  {
    at: "spec",
    message: "actors mount the publicData of every task",
    refused: [secondTask("{image: {reference: a}}", "{image: {reference: a}}")],
    accepted: [secondTask("{image: {reference: a}}", "{image: {reference: b}}")],
  },
  {
    at: "spec.tasks[]",
    message: "publicData and privateData are given together",
    refused: [`tasks=[{name: diamonds, grader: {${GRADER}}, publicData: {image: {reference: a}}}]`],
    accepted: [images("a", "b")],
  },
  {
    at: "spec.tasks[]",
    message: "publicData and privateData are given together",
    refused: ["tasks=[{name: diamonds, privateData: {image: {reference: a}}}]"],
    accepted: ["tasks=[{name: diamonds}]"],
  },
  {
    at: "spec.tasks[]",
    message: "a task with data of its own states how it is graded",
    refused: ["tasks=[{name: diamonds, publicData: {image: {reference: a}}, privateData: {image: {reference: b}}}]"],
    accepted: [
      images("a", "b"),
      "tasks=[{name: leaf-classification, publicData: {image: {reference: a}}, privateData: {image: {reference: b}}}]",
    ],
  },
  ...[
    ["claimName: c", "claimName: c"],
    ["claimName: c", "claimName: c, subPath: private"],
    ["claimName: c, subPath: data", "claimName: c, subPath: data"],
    ["claimName: c, subPath: data", "claimName: c, subPath: data/private"],
  ].map(([open, answers]) => ({
    at: "spec.tasks[]",
    message: "actors mount publicData and could read the answers: on one claim",
    refused: [claims(open!, answers!)],
    accepted: [claims("claimName: c, subPath: data", "claimName: c, subPath: data-private")],
  })),
  {
    at: "spec.tasks[]",
    message: "actors mount publicData and could read the answers: give publicData and privateData different images",
    refused: [images("a", "a")],
    accepted: [images("a", "a:private")],
  },
  {
    at: "spec.tasks[]",
    message: "keptOutputBytes (kept of the start and of the end)",
    refused: ["tasks=[{name: diamonds, outputBytes: 1025, keptOutputBytes: 513}]"],
    accepted: ["tasks=[{name: diamonds, outputBytes: 1026, keptOutputBytes: 513}]"],
  },
  {
    at: "spec.tasks[]",
    message: "reward Medal needs scores that earn medals",
    refused: [`tasks=[{name: diamonds, reward: Medal, grader: {${GRADER}}}]`],
    accepted: [`tasks=[{name: diamonds, reward: Medal, grader: {${GRADER}}, medals: ${MEDALS}}]`],
  },
  ...[`medals: ${MEDALS}`, "medalRewards: {gold: 1, silver: 1, bronze: 1, median: 0, none: 0}"].map((given) => ({
    at: "spec.tasks[]",
    message: "medals and medalRewards have a meaning with reward Medal alone",
    refused: [`tasks=[{name: diamonds, reward: Rank, ${given}}]`],
    accepted: [`tasks=[{name: diamonds, reward: Medal, ${given}}]`],
  })),
  {
    at: "spec.tasks[]",
    message: "rewardSplit: Half is the older spelling of privateShare",
    refused: ["tasks=[{name: diamonds, rewardSplit: Half, privateShare: 0.5}]"],
    accepted: [
      "tasks=[{name: diamonds, rewardSplit: Half, privateShare: 0}]",
      "tasks=[{name: diamonds, privateShare: 0.5}]",
    ],
  },
  ...sourceCases("publicData"),
  ...sourceCases("privateData"),
  ...["MAE", "RMSE", "RMSLE", "MAPE", "LogLoss", "Brier"].map((metric) => ({
    at: "spec.tasks[].grader",
    message: "direction contradicts metric",
    refused: [grader(`metric: ${metric}, idColumn: id, targetColumns: [y], direction: Higher`)],
    accepted: [grader(`metric: ${metric}, idColumn: id, targetColumns: [y], direction: Lower`)],
  })),
  ...["R2", "Accuracy", "RocAuc", "Pearson", "F1Macro", "MAPAtK"].map((metric) => ({
    at: "spec.tasks[].grader",
    message: "direction contradicts metric",
    refused: [grader(`metric: ${metric}, idColumn: id, targetColumns: [y], direction: Lower`)],
    accepted: [grader(`metric: ${metric}, idColumn: id, targetColumns: [y], direction: Higher`)],
  })),
  {
    at: "spec.tasks[].grader",
    message: "no prediction could be valid",
    refused: [grader(`${GRADER}, bounds: {least: 1, most: 0.5}`)],
    accepted: [grader(`${GRADER}, bounds: {least: 1, most: 1}`), grader(`${GRADER}, bounds: {most: 0}`)],
  },
  {
    at: "spec.tasks[].grader",
    message: "rewardRange.best must be better",
    refused: [grader(`${GRADER}, rewardRange: {worst: 1, best: 1}`)],
    accepted: [grader(`${GRADER}, rewardRange: {worst: 1, best: 0.5}`)],
  },
  {
    at: "spec.tasks[].grader",
    message: "rewardRange.best must be better",
    refused: [
      grader("metric: R2, idColumn: id, targetColumns: [y], direction: Higher, rewardRange: {worst: 1, best: 0}"),
    ],
    accepted: [
      grader("metric: R2, idColumn: id, targetColumns: [y], direction: Higher, rewardRange: {worst: 0, best: 1}"),
    ],
  },
  {
    at: "spec.tasks[].grader",
    message: "idColumn is not predicted",
    refused: [grader("metric: R2, idColumn: id, targetColumns: [y, id], direction: Higher")],
    accepted: [grader("metric: R2, idColumn: id, targetColumns: [y, Id], direction: Higher")],
  },
];
