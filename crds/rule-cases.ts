/**
 * One table for the rules of the CRD: a change of a manifest that a rule refuses, and the nearest one that it accepts.
 * `rules.test.ts` evaluates the rules of the CRD here, `api-server.test.ts` on a real API server.
 */

import type { RuleCase } from "./rule-case.ts";
import { POD_TEMPLATE_CASES } from "./rule-cases-pods.ts";

/** The valid manifest that every case changes. */
export const BASE = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata:
  name: test
spec:
  tasks:
    - name: diamonds
  model:
    policy: quickstart
`;

const GRADER = "metric: MAE, idColumn: id, targetColumns: [price], direction: Lower";
/** A task with data on claims. */
const claims = (publicData: string, privateData: string, further = `grader: {${GRADER}}`): string =>
  `tasks=[{name: diamonds, ${further}, publicData: {persistentVolumeClaim: {${publicData}}}, privateData: {persistentVolumeClaim: {${privateData}}}}]`;
const images = (publicData: string, privateData: string): string =>
  `tasks=[{name: diamonds, grader: {${GRADER}}, publicData: {image: {reference: ${publicData}}}, privateData: {image: {reference: ${privateData}}}}]`;
const sources = (publicData: string, privateData: string): string =>
  `tasks=[{name: diamonds, grader: {${GRADER}}, publicData: ${publicData}, privateData: ${privateData}}]`;
/** Two tasks with data of their own: the public data of the first, and the answers of the second. */
const secondTask = (publicData: string, privateData: string): string =>
  `tasks=[{name: one, grader: {${GRADER}}, publicData: ${publicData}, privateData: {image: {reference: c}}}, ` +
  `{name: two, grader: {${GRADER}}, publicData: {image: {reference: d}}, privateData: ${privateData}}]`;
const grader = (text: string): string => `tasks[0].grader={${text}}`;
/** A valid `model.source`. */
const HUB = "{huggingFace: {repo: a/b}}";
const fromHub = (text: string): string => `model={source: {huggingFace: {${text}}}}`;
const fromS3 = (text: string): string => `model={source: {s3: {${text}}}}`;
const fromOci = (text: string): string => `model={source: {oci: {${text}}}}`;
const CUSTOM = claims("claimName: open", "claimName: answers");

/** Returns the cases of `spec.results`, whose bucket has the same rules as `model.source.s3`. */
function resultsCases(): RuleCase[] {
  const to = (text: string): string => `results={s3: {${text}}}`;
  const good = "bucket: abc, prefix: a";
  const at = "spec.results.s3";
  const cases: [at: string, message: string, refused: string, accepted: string][] = [
    [`${at}.bucket`, "the name of a bucket has lower-case", "bucket: a_b, prefix: a", good],
    [`${at}.prefix`, "a prefix in a bucket is a folder", "bucket: abc, prefix: /a", good],
    [`${at}.endpoint`, "the address of an S3 server", `${good}, endpoint: "s3.example.com"`, good],
    [`${at}.region`, "a region of S3 has", `${good}, region: A`, `${good}, region: eu-1`],
    [`${at}.secretRef.name`, "the name of a Secret has", `${good}, secretRef: {name: longrun-s3-}`, good],
    [`${at}.secretRef.name`, "a run can use a Secret only", `${good}, secretRef: {name: a}`, good],
    [`${at}.serviceAccountName`, "the name of a service account", `${good}, serviceAccountName: longrun-s3_`, good],
    [`${at}.serviceAccountName`, "a run can use a service account only", `${good}, serviceAccountName: a`, good],
    [
      at,
      "give secretRef or serviceAccountName",
      `${good}, secretRef: {name: longrun-s3}, serviceAccountName: longrun-s3`,
      good,
    ],
  ];
  return [
    ...cases.map(([at, message, refused, accepted]) => ({
      ...{ at, message },
      refused: [to(refused)],
      accepted: [to(accepted)],
    })),
    {
      at: "spec",
      message: "results needs learner.storage.accessMode ReadWriteOnce",
      refused: ["learner.storage.accessMode=ReadWriteOncePod", to(good)],
      accepted: [to(good)],
    },
  ];
}

/** The same for the public and the private data, which have the same rules. */
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

function resourceCases(at: string): RuleCase[] {
  const set = (text: string): string[] => [`${at.replace("spec.", "")}={${text}}`];
  return [
    {
      at,
      message: "a resource is cpu, memory",
      refused: set("requests: {cpus: 2}"),
      accepted: set("requests: {cpu: 2, hugepages-2Mi: 2Mi, ephemeral-storage: 1Gi}"),
    },
    {
      at,
      message: "a resource is cpu, memory",
      refused: set("limits: {ram: 2Gi}"),
      accepted: set("limits: {memory: 6Gi}"),
    },
    {
      at,
      message: "a request is at most its limit",
      refused: set("requests: {memory: 9Gi}, limits: {memory: 9000Mi}"),
      accepted: set("requests: {memory: 9Gi}, limits: {memory: 9216Mi}"),
    },
    {
      at,
      message: "a request is at most its limit",
      refused: set("requests: {cpu: 1}, limits: {cpu: 999m}"),
      accepted: set("requests: {cpu: '0.1'}, limits: {cpu: 100m}"),
    },
    {
      at,
      message: "a device such as nvidia.com/gpu is requested by its limit",
      refused: set("requests: {nvidia.com/gpu: 1}"),
      accepted: set('requests: {nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: 1}'),
    },
    ...[
      ["requests", "requests: {memory: 0}, limits: {memory: 6Gi}"],
      ["requests", "requests: {memory: 1m}, limits: {memory: 6Gi}"],
      ["requests", "requests: {ephemeral-storage: 512m}"],
      ["limits", "limits: {ephemeral-storage: 0}"],
      ...(at.includes("sandbox") ? [] : [["limits", "limits: {memory: 512m}"]]),
    ].map(([list, text]) => ({
      at: `${at}.${list}`,
      message: "memory and ephemeral-storage are in bytes",
      refused: set(text!),
      accepted: set(
        "requests: {memory: 5Gi, ephemeral-storage: 1Mi}, limits: {memory: 6442450944, ephemeral-storage: 2Mi}",
      ),
    })),
  ];
}

/** Names and addresses that have the wrong form, each with the nearest that has not. */
const FORMS: RuleCase[] = (
  [
    ["spec.tasks[].name", "the name of a task", "tasks[0].name=A_b", "tasks[0].name=a-b"],
    [
      "spec.tasks[].publicData.persistentVolumeClaim.claimName",
      "the name of a claim",
      claims("claimName: A", "claimName: answers"),
      claims("claimName: a.b", "claimName: answers"),
    ],
    [
      "spec.tasks[].privateData.persistentVolumeClaim.claimName",
      "the name of a claim",
      claims("claimName: a", "claimName: a_b"),
      claims("claimName: a", "claimName: a-b"),
    ],
    [
      "spec.model.volume.persistentVolumeClaim.claimName",
      "the name of a claim",
      "model={policy: a/b, volume: {persistentVolumeClaim: {claimName: -a}}}",
      "model={policy: a/b, volume: {persistentVolumeClaim: {claimName: a}}}",
    ],
    [
      "spec.prompts.packages[]",
      "the name of a Python package",
      "prompts.packages=['numpy==2']",
      "prompts.packages=[scikit-learn]",
    ],
    [
      "spec.learner.storage.size",
      "a size is a number of bytes",
      "learner.storage.size=5ki",
      "learner.storage.size=5Gi",
    ],
    [
      "spec.learner.storage.size",
      "a size is a number of bytes",
      "learner.storage.size='100 GB'",
      "learner.storage.size=204800Ki",
    ],
    [
      "spec.learner.storage.className",
      "the name of a StorageClass",
      "learner.storage.className=Fast",
      "learner.storage.className=fast",
    ],
    [
      "spec.actors.runtimeClassName",
      "the name of a RuntimeClass",
      "actors.runtimeClassName=g_v",
      "actors.runtimeClassName=gv",
    ],
    ["spec.initFrom.run", "the name of a TrainingRun", "initFrom.run=a.b", "initFrom.run=a-b"],
    ...["ftp://hooks.test", "http:// a/b", "https:///hook"].map((url) => [
      "spec.notifications.webhook.url",
      "the address of a webhook",
      `notifications.webhook.url="${url}"`,
      "notifications.webhook.url=https://a/b",
    ]),
    ...[
      ["name: A, key: k", "the name of a Secret", "name"],
      ["name: a, key: k/l", "a key of a Secret", "key"],
    ].map(([ref, message, field]) => [
      `spec.notifications.webhook.urlFrom.secretKeyRef.${field}`,
      message,
      `notifications.webhook.urlFrom.secretKeyRef={${ref}}`,
      "notifications.webhook.urlFrom.secretKeyRef={name: a, key: K.l_m}",
    ]),
    ["spec.queueName", "the name of a LocalQueue", "queueName=Team", "queueName=team"],
    ["spec.managedBy", "managedBy is a domain", "managedBy=kueue", "managedBy=kueue.x-k8s.io/multikueue"],
  ] as [string, string, string, string][]
).map(([at, message, refused, accepted]) => ({ at, message, refused: [refused], accepted: [accepted] }));

const FIT: RuleCase[] = [
  ...["a.b", "a".repeat(41), "7a"].map((name) => ({
    at: "",
    message: "names of pods and of a Service are made from metadata.name",
    refused: [`metadata.name="${name}"`],
    accepted: [`metadata.name=${"a".repeat(40)}`],
  })),
  {
    at: "",
    message: "initFrom.run is this run itself",
    refused: ["initFrom.run=test"],
    accepted: ["initFrom.run=other"],
  },
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
    at: "spec",
    message: "algorithm.miniBatchSize must divide",
    refused: ["algorithm.batchSize=200"],
    accepted: ["algorithm.batchSize=256"],
  },
  {
    at: "spec",
    message: "algorithm.microBatchSize is at most",
    refused: ["algorithm.microBatchSize=129"],
    accepted: ["algorithm.microBatchSize=128"],
  },
  {
    at: "spec",
    message: "learner.compute TF32 and BFloat16 need a GPU",
    refused: ["learner.compute=BFloat16", "learner.compute=TF32"],
    accepted: ["BFloat16", "TF32"].map(
      (compute) => `learner={compute: ${compute}, device: CUDA, resources: {limits: {nvidia.com/gpu: 1}}}`,
    ),
  },
  {
    at: "spec",
    message: "a failed program with all markers",
    refused: ["algorithm.markerReward=0.15"],
    accepted: ["algorithm.markerReward=0.14"],
  },
  {
    at: "spec",
    message: "a failed program with all markers",
    refused: [CUSTOM, "algorithm.markerReward=0.125", "tasks[0].grader.rewardFloor=-9.125"], // as much as the worst valid one
    accepted: [CUSTOM, "tasks[0].grader.rewardFloor=-9.25"],
  },
  {
    at: "spec",
    message: "criticWarmupIterations needs baseline Critic",
    refused: ["algorithm.baseline=BatchMean", "algorithm.criticWarmupIterations=1"],
    accepted: ["algorithm.baseline=Critic", "algorithm.criticWarmupIterations=1"],
  },
  ...["BatchMean", "GRPO", "RLOO"].map((baseline) => ({
    at: "spec",
    message: "lambda needs baseline Critic",
    refused: [`algorithm={baseline: ${baseline}, lambda: 0.95}`],
    accepted: ["algorithm={baseline: Critic, lambda: 0.95}"],
  })),
  ...["GRPO", "RLOO"].flatMap((baseline) => [
    {
      at: "spec",
      message: "baselines GRPO and RLOO compare whole samples",
      refused: [`algorithm={baseline: ${baseline}, gamma: 0.99}`],
      accepted: ["algorithm={baseline: BatchMean, gamma: 0.99}"],
    },
    {
      at: "spec",
      message: "a batch of baseline GRPO or RLOO holds whole groups",
      refused: [`algorithm={baseline: ${baseline}, groupSize: 12}`],
      accepted: [`algorithm={baseline: ${baseline}, groupSize: 16}`],
    },
    {
      at: "spec",
      message: "the samples of a group are generated together",
      refused: [`algorithm={baseline: ${baseline}, groupSize: 64}`, "model.generationBatchSize=63"],
      accepted: [`algorithm={baseline: ${baseline}, groupSize: 64}`, "model.generationBatchSize=64"],
    },
  ]),
  ...["Critic", "BatchMean", "RLOO"].map((baseline) => ({
    at: "spec",
    message: "scaleByGroupStd belongs to baseline GRPO",
    refused: [`algorithm={baseline: ${baseline}, scaleByGroupStd: false}`],
    accepted: ["algorithm={baseline: GRPO, scaleByGroupStd: false}"],
  })),
  ...["algorithm={baseline: GRPO, klPlacement: Reward, scaleByGroupStd: false}", "algorithm={baseline: GRPO}"].map(
    (accepted) => ({
      at: "spec",
      message: "in a group of equal rewards scaleByGroupStd would blow up",
      refused: ["algorithm={baseline: GRPO, klPlacement: Reward}"],
      accepted: [accepted],
    }),
  ),
  {
    at: "spec",
    message: "in a group of equal rewards scaleByGroupStd would blow up",
    refused: ["algorithm={baseline: GRPO, klPlacement: Reward}"],
    accepted: ["algorithm={baseline: GRPO, klPlacement: Reward, klCoefficient: 0}"],
  },
  ...[
    ["baseline: RLOO", "baseline: RLOO, whitening: Plain"],
    ["baseline: RLOO, whitening: 'Off'", "baseline: Critic"],
    ["baseline: GRPO, scaleByGroupStd: false", "baseline: GRPO"],
    ["baseline: Critic, whitening: 'Off'", "baseline: Critic"],
    ["baseline: BatchMean, whitening: 'Off'", "baseline: BatchMean"],
  ].map(([refused, accepted]) => ({
    at: "spec",
    message: "validScoreWeight counts standard deviations",
    refused: [`algorithm={validScoreWeight: 0.5, ${refused}}`],
    accepted: [`algorithm={validScoreWeight: 0.5, ${accepted}}`],
  })),
  {
    at: "spec",
    message: "the buffer lies below the longest response",
    refused: ["algorithm.overlongPenalty={bufferTokens: 65}", "model.maxResponseTokens=64"],
    accepted: ["algorithm.overlongPenalty={bufferTokens: 64}", "model.maxResponseTokens=64"],
  },
  {
    at: "spec",
    message: "the policy would never be trained",
    refused: ["algorithm.criticWarmupIterations=2", "stopping.iterations=2"],
    accepted: ["algorithm.criticWarmupIterations=1", "stopping.iterations=2"],
  },
  ...[
    ["warmupIterations: 100", "warmupIterations: 99"],
    [
      "type: Linear, warmupIterations: 10, decayIterations: 10",
      "type: Linear, warmupIterations: 10, decayIterations: 11",
    ],
  ].map(([refused, accepted]) => ({
    at: "spec",
    message: "the learning rate would never be reached",
    refused: [`algorithm.learningRateSchedule={${refused}}`],
    accepted: [`algorithm.learningRateSchedule={${accepted}}`],
  })),
  {
    at: "spec",
    message: "the learning rate would never be reached",
    refused: ["algorithm={learningRateSchedule: {warmupIterations: 60}, criticWarmupIterations: 40}"],
    accepted: ["algorithm={learningRateSchedule: {warmupIterations: 60}, criticWarmupIterations: 39}"],
  },
  {
    at: "spec",
    message: "the learning rate would never be reached",
    refused: ["algorithm={learningRateSchedule: {type: Linear, decayIterations: 5}, criticWarmupIterations: 5}"],
    accepted: ["algorithm={learningRateSchedule: {type: Linear, decayIterations: 5}, criticWarmupIterations: 4}"],
  },
  ...["minimumRatio: 0.1", "decayIterations: 50"].map((decay) => ({
    at: "spec.algorithm.learningRateSchedule",
    message: "minimumRatio and decayIterations belong to a decay",
    refused: [`algorithm.learningRateSchedule={${decay}}`],
    accepted: [`algorithm.learningRateSchedule={type: Cosine, ${decay}}`],
  })),
  ...["0.5", "1"].map((dualClip) => ({
    at: "spec.algorithm.dualClip",
    message: "algorithm.dualClip is 0 (off) or above 1",
    refused: [`algorithm.dualClip=${dualClip}`],
    accepted: ["algorithm.dualClip=1.01"],
  })),
  ...[
    ["{timeoutSeconds: 1}", `{url: "http://a:8080/b"}`],
    [
      `{url: "https://a.b", urlFrom: {secretKeyRef: {name: a, key: b}}}`,
      "{urlFrom: {secretKeyRef: {name: a, key: b}}}",
    ],
  ].map(([refused, accepted]) => ({
    at: "spec.notifications.webhook",
    message: "give exactly one of url and urlFrom",
    refused: [`notifications.webhook=${refused}`],
    accepted: [`notifications.webhook=${accepted}`],
  })),
  {
    at: "spec",
    message: "convergence could never be seen",
    refused: ["stopping={iterations: 10, convergence: {window: 11, tolerance: 0}}"],
    accepted: ["stopping={iterations: 10, convergence: {window: 10, tolerance: 0}}"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal divides evaluation.samples",
    refused: ["evaluation={protocol: Equal, improve: false}"],
    accepted: ["evaluation={protocol: Paper, improve: false}"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal divides evaluation.samples",
    refused: ["evaluation.protocol=Equal", "prompts.improveProbability=0"],
    accepted: ["evaluation={protocol: Equal, improve: true}", "prompts.improveProbability=0"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal gives each kind of prompt half of evaluation.samples",
    refused: ["evaluation={protocol: Equal, samples: 7}"],
    accepted: ["evaluation={protocol: Equal, samples: 8}"],
  },
  {
    at: "spec",
    message: "leases would end between two heartbeats",
    refused: ["learner={heartbeatSeconds: 5, leaseSeconds: 9.5}"],
    accepted: ["learner={heartbeatSeconds: 5, leaseSeconds: 10}"],
  },
  {
    at: "spec",
    message: "actors.min is at most actors.max",
    refused: ["actors={min: 3, max: 2}"],
    accepted: ["actors={min: 3, max: 3}"],
  },
  {
    at: "spec",
    message: "actors.replicas (kubectl scale) needs actors.autoscaling External",
    refused: ["actors.replicas=0"],
    accepted: ["actors={replicas: 4, autoscaling: External}"],
  },
  {
    at: "spec",
    message: "actors.isolation Pod runs one execution per pod",
    refused: ["actors={isolation: Pod, slots: 2}"],
    accepted: ["actors={isolation: Pod, slots: 1}"],
  },
  {
    at: "spec",
    message: "restart.backoffSeconds is at most",
    refused: ["restart.backoffSeconds=31"],
    accepted: ["restart.backoffSeconds=30"],
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
    message: "no prediction could be valid",
    refused: [grader(`${GRADER}, bounds: {least: 1, most: 0.5}`)],
    accepted: [grader(`${GRADER}, bounds: {least: 1, most: 1}`), grader(`${GRADER}, bounds: {most: 0}`)],
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
  ...["./policy", "policies/a", "/policy", ".", "a.b"].map((policy) => ({
    at: "spec.model",
    message: "model.policy is a folder, and on Kubernetes a folder lies on a volume",
    refused: [`model.policy="${policy}"`],
    accepted: ["model={policy: ./policies/a, volume: {persistentVolumeClaim: {claimName: models}}}"],
  })),
  ...["/policy", "..", "../policy", "a/../../b", "a/"].map((policy) => ({
    at: "spec.model",
    message: "model.policy is a folder below the root of model.volume",
    refused: [`model={policy: "${policy}", volume: {image: {reference: models}}}`],
    accepted: ['model={policy: ".", volume: {image: {reference: models}}}'],
  })),
  {
    at: "spec.model",
    message: "give exactly one of model.policy and model.source",
    refused: ["model={temperature: 1}"],
    accepted: ["model={policy: quickstart}"],
  },
  {
    at: "spec.model",
    message: "give exactly one of model.policy and model.source",
    refused: [`model={policy: quickstart, source: ${HUB}}`],
    accepted: [`model={source: ${HUB}}`],
  },
  {
    at: "spec.model",
    message: "model.volume holds the folder of model.policy",
    refused: [`model={source: ${HUB}, volume: {image: {reference: m}}}`],
    accepted: [`model={source: ${HUB}}`],
  },
  ...["qwen3b", "/3b", "qwen/", "a/b/c", "a/../b", "a/b..c", "https://hub/a", "a/b c", "-a/b", "a/b:main"].map(
    (repo) => ({
      at: "spec.model.source.huggingFace.repo",
      message: "a model of the hub is OWNER/NAME",
      refused: [fromHub(`repo: "${repo}"`)],
      accepted: [fromHub("repo: Qwen/Qwen2.5-3B-Instruct"), fromHub("repo: a_b/C.d-e")],
    }),
  ),
  ...["a..b", "../a", "a b", "-a", "a?b", "/a"].map((revision) => ({
    at: "spec.model.source.huggingFace.revision",
    message: "a revision is a branch, tag or commit",
    refused: [fromHub(`repo: a/b, revision: "${revision}"`)],
    accepted: [fromHub("repo: a/b, revision: refs/pr/1"), fromHub("repo: a/b, revision: v1.0")],
  })),
  ...["ftp://hub.test", "hub.test/hub", "https://a:b@hub.test", "https://hub.test/?a=b", "https:// hub"].map(
    (endpoint) => ({
      at: "spec.model.source.huggingFace.endpoint",
      message: "the address of a hub begins with http",
      refused: [fromHub(`repo: a/b, endpoint: "${endpoint}"`)],
      accepted: [
        fromHub("repo: a/b, endpoint: https://hub.test:8443/mirror"),
        fromHub("repo: a/b, endpoint: http://hub"),
      ],
    }),
  ),
  {
    at: "spec.model.source.huggingFace.secretRef.name",
    message: "the name of a Secret has lower-case letters",
    refused: [fromHub("repo: a/b, secretRef: {name: longrun-hub-}")],
    accepted: [fromHub("repo: a/b, secretRef: {name: longrun-hub}")],
  },
  {
    at: "spec.model.source.huggingFace.secretRef.name",
    message: "a run can use a Secret only if it was made for that",
    refused: [fromHub("repo: a/b, secretRef: {name: database}")],
    accepted: [fromHub("repo: a/b, secretRef: {name: longrun-hub-team}")],
  },
  {
    at: "spec.model.source.huggingFace.secretRef.key",
    message: "a key of a Secret has letters",
    refused: [fromHub("repo: a/b, secretRef: {name: longrun-hub, key: a/b}")],
    accepted: [fromHub("repo: a/b, secretRef: {name: longrun-hub, key: token}")],
  },
  ...["{}", "{huggingFace: {repo: a/b}, s3: {bucket: abc}}", "{s3: {bucket: abc}, oci: {reference: h/a:b}}"].map(
    (source) => ({
      at: "spec.model.source",
      message: "give exactly one of model.source.huggingFace, s3 and oci",
      refused: [`model={source: ${source}}`],
      accepted: [fromS3("bucket: abc")],
    }),
  ),
  ...["Models", "-ab", "a_b", "ab/c"].map((bucket) => ({
    at: "spec.model.source.s3.bucket",
    message: "the name of a bucket has lower-case letters",
    refused: [fromS3(`bucket: "${bucket}"`)],
    accepted: [fromS3("bucket: my.models-1")],
  })),
  ...["/a", "a/", "a//b", "../a", "a/./b", "a b", "a?b"].map((prefix) => ({
    at: "spec.model.source.s3.prefix",
    message: "a prefix in a bucket is a folder",
    refused: [fromS3(`bucket: abc, prefix: "${prefix}"`)],
    accepted: [fromS3("bucket: abc, prefix: models/Qwen2.5-3B..x")],
  })),
  ...["s3.example.com", "ftp://s3.test", "https://a:b@s3.test", "https://s3.test/?a=b"].map((endpoint) => ({
    at: "spec.model.source.s3.endpoint",
    message: "the address of an S3 server begins with http",
    refused: [fromS3(`bucket: abc, endpoint: "${endpoint}"`)],
    accepted: [fromS3("bucket: abc, endpoint: http://minio.storage.svc:9000")],
  })),
  {
    at: "spec.model.source.s3.region",
    message: "a region of S3 has lower-case letters",
    refused: [fromS3("bucket: abc, region: EU Central")],
    accepted: [fromS3("bucket: abc, region: eu-central-1")],
  },
  ...[
    ["secretRef: {name: longrun-s3-}", "secretRef: {name: longrun-s3}", "the name of a Secret has lower-case letters"],
    ["secretRef: {name: database}", "secretRef: {name: longrun-s3-a}", "a run can use a Secret only if it was made"],
  ].map(([refused, accepted, message]) => ({
    at: "spec.model.source.s3.secretRef.name",
    message: message!,
    refused: [fromS3(`bucket: abc, ${refused}`)],
    accepted: [fromS3(`bucket: abc, ${accepted}`)],
  })),
  ...[
    ["longrun-s3_", "the name of a service account has lower-case letters"],
    ["admin", "a run can use a service account only if it was made for that"],
  ].map(([account, message]) => ({
    at: "spec.model.source.s3.serviceAccountName",
    message: message!,
    refused: [fromS3(`bucket: abc, serviceAccountName: ${account}`)],
    accepted: [fromS3("bucket: abc, serviceAccountName: longrun-s3-models")],
  })),
  {
    at: "spec.model.source.s3",
    message: "give secretRef or serviceAccountName, not both",
    refused: [fromS3("bucket: abc, secretRef: {name: longrun-s3}, serviceAccountName: longrun-s3")],
    accepted: [fromS3("bucket: abc, secretRef: {name: longrun-s3}")],
  },
  ...["qwen:v1", "host/qwen", "HOST/qwen:v1", "host/Qwen:v1", "https://host/qwen:v1", "host/qwen@sha256:abc"].map(
    (reference) => ({
      at: "spec.model.source.oci.reference",
      message: "an artifact is HOST/REPOSITORY:TAG",
      refused: [fromOci(`reference: "${reference}"`)],
      accepted: [
        fromOci("reference: registry.test:5000/ml/qwen:v1.0"),
        fromOci(`reference: "host/a/b@sha256:${"0".repeat(64)}"`),
      ],
    }),
  ),
  ...[
    ["longrun-oci-", "longrun-oci", "the name of a Secret has lower-case letters"],
    ["longrun-s3", "longrun-oci-a", "a run can use a Secret only if it was made for that"],
  ].map(([refused, accepted, message]) => ({
    at: "spec.model.source.oci.secretRef.name",
    message: message!,
    refused: [fromOci(`reference: "h/a:b", secretRef: {name: ${refused}}`)],
    accepted: [fromOci(`reference: "h/a:b", secretRef: {name: ${accepted}}`)],
  })),
  ...resultsCases(),
  {
    at: "spec.model",
    message: "adaptation.rank, alpha and targets need",
    refused: ["model.adaptation={targets: [q_proj]}"],
    accepted: ["model.adaptation={type: LoRA, rank: 8, targets: [q_proj]}"],
  },
  {
    at: "spec.model",
    message: "adaptation.type LoRA needs adaptation.rank",
    refused: ["model.adaptation.type=LoRA"],
    accepted: ["model.adaptation={type: LoRA, rank: 8}"],
  },
  ...["{}", "{image: {reference: m}, persistentVolumeClaim: {claimName: m}}"].map((volume) => ({
    at: "spec.model.volume",
    message: "give exactly one of persistentVolumeClaim and image",
    refused: [`model.volume=${volume}`],
    accepted: ["model.volume={image: {reference: m}}"],
  })),
  {
    at: "spec.model.volume.persistentVolumeClaim.subPath",
    message: "subPath is a folder below the root of the volume",
    refused: ["model.volume.persistentVolumeClaim={claimName: m, subPath: ../x}"],
    accepted: ["model.volume.persistentVolumeClaim={claimName: m, subPath: x}"],
  },
  {
    at: "spec.initFrom",
    message: "give exactly one of path and run",
    refused: ["initFrom={}"],
    accepted: ["initFrom={run: other}"],
  },
  {
    at: "spec.initFrom",
    message: "path works on one machine only",
    refused: ["initFrom.path=checkpoint"],
    accepted: ["initFrom={run: other, iteration: 3}"],
  },
];

const PODS: RuleCase[] = [
  {
    at: "spec",
    message: "the learner uses whole GPUs, 16 at most",
    refused: ["learner.resources.limits={nvidia.com/gpu: 17}"],
    accepted: ["1", '"1"', "8", "16"].map((count) => `learner.resources.limits={nvidia.com/gpu: ${count}}`),
  },
  ...["nvidia.com/mig-1g.10gb: 2", "nvidia.com/gpu.shared: 2", "nvidia.com/gpu: 4, nvidia.com/gpu.shared: 1"].map(
    (limits) => ({
      at: "spec",
      message: "the learner uses whole GPUs, 16 at most",
      refused: [`learner.resources.limits={${limits}}`],
      accepted: ["learner.resources.limits={nvidia.com/gpu: 0, nvidia.com/mig-1g.10gb: 1}"],
    }),
  ),
  ...["requests: {cpu: 1}", "limits: {memory: 8Gi}", "limits: {nvidia.com/gpu: 0}"].map((resources) => ({
    at: "spec",
    message: "learner.device CUDA needs a GPU",
    refused: [`learner={device: CUDA, resources: {${resources}}}`],
    accepted: ["nvidia.com/gpu.shared: 1", "nvidia.com/gpu: 4"].map(
      (limits) => `learner={device: CUDA, resources: {limits: {${limits}}}}`,
    ),
  })),
  {
    at: "spec",
    message: "learner.device CUDA needs a GPU",
    refused: ["learner={device: CUDA, resources: {limits: {example.com/gpu: 1}}}"],
    accepted: ["learner.device=CUDA"],
  },
  {
    at: "spec",
    message: "a sandbox needs more memory than its program may use",
    refused: ["actors.sandboxResources.limits.memory=4Gi"],
    accepted: ["actors.sandboxResources.limits.memory=4097Mi"],
  },
  {
    at: "spec",
    message: "a sandbox that requests memory has a limit too",
    refused: ["actors.sandboxResources.requests.memory=1Gi"],
    accepted: ["actors.sandboxResources={requests: {memory: 1Gi}, limits: {memory: 8Gi}}"],
  },
  {
    at: "spec.learner.storage.size",
    message: "learner.storage.size holds the store",
    refused: ["learner.storage.size=99Mi"],
    accepted: ["learner.storage.size=0.1Gi"],
  },
  ...["spec.learner.sharedMemory", "spec.generation.sharedMemory"].map((at) => ({
    at,
    message: "a size is a number of bytes",
    refused: [`${at.replace("spec.", "")}=1gi`],
    accepted: [`${at.replace("spec.", "")}=1.5Gi`],
  })),
  ...[
    "spec.learner.resources",
    "spec.actors.resources",
    "spec.actors.sandboxResources",
    "spec.generation.resources",
  ].flatMap(resourceCases),
  ...POD_TEMPLATE_CASES,
];

const LORA = "adaptation: {type: LoRA, rank: 16}";
const VOLUME = "policy: ./m, volume: {image: {reference: m}}";
const VLLM = "engine: VLLM, image: vllm";

const GENERATION: RuleCase[] = [
  {
    at: "spec.generation",
    message: "generation.replicas.min is at most",
    refused: ["generation.replicas={min: 2}"],
    accepted: ["generation.replicas={min: 2, max: 2}"],
  },
  {
    at: "spec.generation",
    message: "engine VLLM needs an image",
    refused: [`model={${LORA}, ${VOLUME}}`, "generation={engine: VLLM}"],
    accepted: [`model={${LORA}, ${VOLUME}}`, `generation={${VLLM}}`],
  },
  ...["nvidia.com/mig-1g.10gb: 2", "nvidia.com/gpu: 17", "nvidia.com/gpu: 1, nvidia.com/gpu.shared: 1"].map(
    (limits) => ({
      at: "spec.generation",
      message: "a generator uses whole GPUs, 16 at most",
      refused: [`generation.resources.limits={${limits}}`],
      accepted: ["generation.resources.limits={nvidia.com/gpu: 4}"],
    }),
  ),
  ...[VOLUME, `${VOLUME}, ${LORA.replace("16", "512")}`].map((model) => ({
    at: "spec",
    message: "generation.engine VLLM takes LoRA adapters of at most rank 512",
    refused: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}}`],
    accepted: [`model={${model}}`, `generation={${VLLM}}`],
  })),
  {
    at: "spec",
    message: "generation.engine VLLM takes LoRA adapters of at most rank 512",
    refused: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}, weightSync: Adapter}`],
    accepted: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}, weightSync: Full}`],
  },
  ...["generation={weightSync: Full}", `model={policy: quickstart, ${LORA}}`].map((accepted) => ({
    at: "spec",
    message: "there is no adapter",
    refused: ["generation={weightSync: Adapter}"],
    accepted: ["generation={weightSync: Adapter}", accepted],
  })),
  {
    at: "spec",
    message: "with top-p vLLM's log-probs",
    refused: [`model={${VOLUME}, ${LORA}, topP: 0.9}`, `generation={${VLLM}}`],
    accepted: [`model={${VOLUME}, ${LORA}, topP: 0.9}`, "generation={}"],
  },
  {
    at: "spec",
    message: "vLLM's image has none of longrun's policies",
    refused: [`model={policy: quickstart, ${LORA}}`, `generation={${VLLM}}`],
    accepted: [`model={policy: quickstart, ${LORA}}`, "generation={}"],
  },
  {
    at: "spec",
    message: "model.source is fetched onto the run's own volume",
    refused: [`model={source: ${HUB}}`, "generation={}"],
    accepted: [`model={${VOLUME}}`, "generation={}"],
  },
];

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

const CHANGE: RuleCase[] = [
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
  fixed("tasks[].rewardSplit", "Half"),
  ...fixedOptional("spec.tasks[]", "guardedRewardCap", "guardedRewardCap cannot change", ["0", "0.5"]),
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

export const RULE_CASES: RuleCase[] = [...FORMS, ...FIT, ...PODS, ...GENERATION, ...CHANGE];
