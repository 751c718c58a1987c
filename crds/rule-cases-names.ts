/** Cases of the rules for names and addresses. */
import { claims, type RuleCase } from "./rule-case.ts";

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
    ["spec.initFrom.volume", "the name of a claim", "initFrom.volume=A", "initFrom.volume=a-data"],
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
    [
      "spec.warmStart.data.configMap.name",
      "the name of a ConfigMap",
      "warmStart.data={configMap: {name: A}}",
      "warmStart.data={configMap: {name: a.b}}",
    ],
    ["spec.queueName", "the name of a LocalQueue", "queueName=Team", "queueName=team"],
    ["spec.controllerClass", "controllerClass has lower-case letters", "controllerClass=Next", "controllerClass=next"],
    ["spec.managedBy", "managedBy is a domain", "managedBy=kueue", "managedBy=kueue.x-k8s.io/multikueue"],
  ] as [string, string, string, string][]
).map(([at, message, refused, accepted]) => ({ at, message, refused: [refused], accepted: [accepted] }));

export const NAME_CASES: RuleCase[] = [
  ...FORMS,
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
    at: "spec.initFrom",
    message: "give exactly one of path, run and volume",
    refused: ["initFrom={}"],
    accepted: ["initFrom={run: other}"],
  },
  {
    at: "spec.initFrom",
    message: "give exactly one of path, run and volume",
    refused: ["initFrom={run: other, volume: other-data}"],
    accepted: ["initFrom={volume: other-data}"],
  },
  {
    at: "spec.initFrom",
    message: "a volume is taken over with its newest checkpoint",
    refused: ["initFrom={volume: other-data, iteration: 2}"],
    accepted: ["initFrom={run: other, iteration: 2}"],
  },
  {
    at: "spec.warmStart.data.persistentVolumeClaim.claimName",
    message: "the name of a claim",
    refused: ["warmStart.data.persistentVolumeClaim={claimName: A}"],
    accepted: ["warmStart.data.persistentVolumeClaim={claimName: a}"],
  },
  {
    at: "spec.warmStart.data.persistentVolumeClaim.subPath",
    message: "subPath is a folder below the root of the volume",
    refused: ["warmStart.data.persistentVolumeClaim={claimName: a, subPath: ../x}"],
    accepted: ["warmStart.data.persistentVolumeClaim={claimName: a, subPath: x}"],
  },
  ...["{}", "{configMap: {name: a}, image: {reference: b}}"].map((refused) => ({
    at: "spec.warmStart.data",
    message: "give exactly one of path, configMap, persistentVolumeClaim and image",
    refused: [`warmStart.data=${refused}`],
    accepted: ["warmStart.data={configMap: {name: a}}", "warmStart.data={persistentVolumeClaim: {claimName: a}}"],
  })),
  {
    at: "spec.warmStart.data",
    message: "path works on one machine only",
    refused: ["warmStart.data={path: corpus.jsonl}"],
    accepted: ["warmStart.data={image: {reference: a}}"],
  },
  {
    at: "spec",
    message: "initFrom goes on from weights that were trained before",
    refused: ["warmStart={data: {configMap: {name: a}}}", "initFrom={run: other}"],
    accepted: ["warmStart={data: {configMap: {name: a}}}"],
  },
  {
    at: "spec",
    message: "initFrom goes on from weights that were trained before",
    refused: ["warmStart={data: {configMap: {name: a}}}", "initFrom={run: other}"],
    accepted: ["warmStart={data: {configMap: {name: a}}}", "initFrom={volume: other-data}"],
  },
  {
    at: "spec",
    message: "model.instrumenter StaticPolicy inserts markers with the reference",
    refused: ["warmStart={data: {configMap: {name: a}}}", "model.instrumenter=StaticPolicy"],
    accepted: ["warmStart={data: {configMap: {name: a}}, reference: Initial}", "model.instrumenter=StaticPolicy"],
  },
  {
    at: "spec.initFrom",
    message: "path works on one machine only",
    refused: ["initFrom.path=checkpoint"],
    accepted: ["initFrom={run: other, iteration: 3}"],
  },
];
