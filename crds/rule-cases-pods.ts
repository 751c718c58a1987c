/** The cases of `rule-cases.ts` for the rules of podTemplate and of environment variables. */
import type { RuleCase } from "./rule-case.ts";

const CONTAINERS: Record<string, string> = {
  "spec.learner.podTemplate": "learner",
  "spec.actors.podTemplate": "supervisor",
  "spec.generation.podTemplate": "generator",
};

/** Cases of labels and annotations that users may not give. */
function metadataCases(at: string, set: (fields: string) => string[], accepted: string[]): RuleCase[] {
  const labels = ["longrun.dev/run: other", "app.kubernetes.io/component: other"];
  const annotations = [
    "longrun.dev/spec-hash: x",
    "container.apparmor.security.beta.kubernetes.io/learner: unconfined",
    ...["seccomp.security.alpha.kubernetes.io/pod: unconfined", "container.seccomp.security.alpha.kubernetes.io/x: y"],
    ...["k8s.v1.cni.cncf.io/networks: open", "v1.multus-cni.io/default-network: open"],
  ];
  return [
    ...labels.map((label) => ({
      at: `${at}.labels`,
      message: "labels of app.kubernetes.io/ and longrun.dev/ are longrun's own",
      refused: set(`labels: {${label}}`),
      accepted,
    })),
    ...annotations.map((annotation) => ({
      at: `${at}.annotations`,
      message: "annotations of longrun.dev/ are longrun's own",
      refused: set(`annotations: {${annotation}}`),
      accepted,
    })),
  ];
}

function podTemplateCases(at: string): RuleCase[] {
  const container = CONTAINERS[at]!;
  const set = (text: string): string[] => [`${at.replace("spec.", "")}={${text}}`];
  const env = (text: string): string[] => set(`spec: {containers: [{name: ${container}, env: [{${text}}]}]}`);
  const accepted = set(
    "metadata: {labels: {team: ml, example.com/longrun.dev: x}, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'}}, spec: {nodeSelector: {disk: ssd}, tolerations: [{key: gpu, operator: Exists}], priorityClassName: low}",
  );
  return [
    ...metadataCases(`${at}.metadata`, (fields) => set(`metadata: {${fields}}`), accepted),
    ...["valueFrom: {}", "value: b, valueFrom: {configMapKeyRef: {name: a, key: b}}"].map((text) => ({
      at: `${at}.spec.containers[].env[]`,
      message: "an environment variable is a value or a ConfigMap's key",
      refused: env(`name: A, ${text}`),
      accepted: env("name: A, valueFrom: {configMapKeyRef: {name: a, key: b}}"),
    })),
    {
      at: `${at}.spec.containers[].env[].name`,
      message: "environment variables of LONGRUN_ are longrun's own",
      refused: env("name: LONGRUN_FINISH_SECONDS, value: '1'"),
      accepted: env("name: MY_LONGRUN_, value: '1'"),
    },
    ...["A-B", "1A", "A=B"].map((name) => ({
      at: `${at}.spec.containers[].env[].name`,
      message: "the name of an environment variable has letters",
      refused: env(`name: "${name}", value: c`),
      accepted: env("name: _a1, value: c"),
    })),
  ];
}

function podVolumeCases(): RuleCase[] {
  const at = "spec.learner.podTemplate.spec";
  const set = (volumes: string, mounts: string): string[] => [
    `learner.podTemplate.spec={containers: [{name: learner, volumeMounts: [${mounts}]}], volumes: [${volumes}]}`,
  ];
  const volume = (text: string): string[] => set(`{name: a, ${text}}`, "{name: a, mountPath: /mnt/a}");
  const mount = (text: string): string[] => set("{name: a, emptyDir: {}}", `{name: a, ${text}}`);
  return [
    // The learner's certificate and key, at a place where they could be shared.
    ...["tls", "data", "other"].map((name) => ({
      at,
      message: "a container can mount volumes of the same podTemplate only",
      refused: set("{name: a, emptyDir: {}}", `{name: ${name}, mountPath: /mnt/a}`),
      accepted: volume("emptyDir: {medium: Memory, sizeLimit: 1.5Gi}"),
    })),
    ...["/data", "/tls", "/config", "/tasks/a", "/", "/mnt", "mnt/a", "/mnt/../tls", "/mnt/..", "/mnt/a:b"].map(
      (path) => ({
        at: `${at}.containers[].volumeMounts[].mountPath`,
        message: "volumes of a podTemplate are mounted below /mnt",
        refused: mount(`mountPath: "${path}"`),
        accepted: mount("mountPath: /mnt/a..b/.c, readOnly: true"),
      }),
    ),
    ...["../b", "/a"].map((path) => ({
      at: `${at}.containers[].volumeMounts[].subPath`,
      message: "subPath is a folder below the root of the volume",
      refused: mount(`mountPath: /mnt/a, subPath: ${path}`),
      accepted: mount("mountPath: /mnt/a, subPath: a/b"),
    })),
    ...["emptyDir: {}, persistentVolumeClaim: {claimName: a}", "image: {reference: a}, configMap: {name: a}"].map(
      (text) => ({
        at: `${at}.volumes[]`,
        message: "a volume of a podTemplate is an emptyDir",
        refused: volume(text),
        accepted: volume("configMap: {name: a, items: [{key: b, path: c}]}"),
      }),
    ),
    {
      at: `${at}.volumes[]`,
      message: "a volume of a podTemplate is an emptyDir",
      refused: set("{name: a}", ""),
      accepted: volume("persistentVolumeClaim: {claimName: a, readOnly: true}"),
    },
    ...["data", "config", "tls", "tmp", "shared-memory", "public-data", "private-data", "model"].map((name) => ({
      at: `${at}.volumes[].name`,
      message: "volumes data, config, tls, tmp, shared-memory, public-data, private-data and model are longrun's own",
      refused: set(`{name: ${name}, emptyDir: {}}`, ""),
      accepted: set("{name: models, emptyDir: {}}", ""),
    })),
    ...["5 Gi", "1gi", "1ki"].map((size) => ({
      at: `${at}.volumes[].emptyDir.sizeLimit`,
      message: "a size is a number of bytes",
      refused: volume(`emptyDir: {sizeLimit: "${size}"}`),
      accepted: volume("emptyDir: {sizeLimit: 64Ki}"),
    })),
  ];
}

export const POD_TEMPLATE_CASES: RuleCase[] = [
  ...["A-B", "1A", "A=B", "LONGRUN_X"].map((name) => ({
    at: "spec.env[].name",
    message: "the name of an environment variable has letters, digits and underscores, no digit first",
    refused: [`env=[{name: "${name}", value: c}]`],
    accepted: ["env=[{name: _a1, value: c}]"],
  })),
  ...Object.keys(CONTAINERS).flatMap(podTemplateCases),
  ...podVolumeCases(),
  ...metadataCases("spec.inheritedMetadata", (fields) => [`inheritedMetadata={${fields}}`], [
    "inheritedMetadata={labels: {team: ml}, annotations: {example.com/owner: someone}}",
  ]),
];
