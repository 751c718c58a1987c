/** Cases of the rules for the model and where it is fetched from, and for the bucket of the results. */
import { fromHub, fromOci, fromS3, HUB, type RuleCase } from "./rule-case.ts";

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
    [`${at}.secretRef.name`, "a run can use only a Secret", `${good}, secretRef: {name: a}`, good],
    [`${at}.serviceAccountName`, "the name of a service account", `${good}, serviceAccountName: longrun-s3_`, good],
    [`${at}.serviceAccountName`, "a run can use only a service account", `${good}, serviceAccountName: a`, good],
    [
      at,
      "give secretRef or serviceAccountName",
      `${good}, secretRef: {name: longrun-s3}, serviceAccountName: longrun-s3`,
      good,
    ],
  ];
  return [
    ...cases.map(([at, message, refused, accepted]) => ({
      at,
      message,
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

export const MODEL_CASES: RuleCase[] = [
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
    message: "a run can use only a Secret whose name begins with",
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
    ["secretRef: {name: database}", "secretRef: {name: longrun-s3-a}", "a run can use only a Secret"],
  ].map(([refused, accepted, message]) => ({
    at: "spec.model.source.s3.secretRef.name",
    message: message!,
    refused: [fromS3(`bucket: abc, ${refused}`)],
    accepted: [fromS3(`bucket: abc, ${accepted}`)],
  })),
  ...[
    ["longrun-s3_", "the name of a service account has lower-case letters"],
    ["admin", "a run can use only a service account whose name begins with"],
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
    ["longrun-s3", "longrun-oci-a", "a run can use only a Secret whose name begins with"],
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
];
