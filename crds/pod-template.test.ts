/** Tests the allow-list of podTemplate on a real API server: accepted fields, refused fields, and the messages. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { DEFAULT_SETTINGS } from "../controller/operator/desired/settings.fixture.ts";
import { desiredActor } from "../controller/operator/parts/actors/desired.ts";
import { desiredLearner } from "../controller/operator/parts/learner/desired.ts";
import { runOf } from "../controller/operator/run.fixture.ts";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../test/cluster/control-plane.ts";
import { type Answer, ApiServer, causesOf } from "./api-server.fixture.ts";
import { BASE } from "./rule-cases.ts";
import { CRD_FILE, readSchema, type Schema } from "./schema.ts";
import { ManifestError, parseTrainingRun, podTemplateProblems } from "./trainingrun.ts";

const RUNS = "/apis/longrun.dev/v1alpha1/namespaces/default/trainingruns";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** kubectl stores the applied object in an annotation; all annotations together may have this many bytes. */
const ANNOTATION_BYTES = 262144;
type Part = "learner" | "actors";
const CONTAINER = { learner: "learner", actors: "supervisor" };

const skip = controlPlaneUnavailable();
let cluster: ControlPlane;
let server: ApiServer;

before(async () => {
  if (skip) return;
  cluster = await startControlPlane({ crds: [CRD_FILE] });
  server = new ApiServer(cluster);
});
after(async () => {
  server?.close();
  await cluster?.stop();
});

const runWith = (part: Part, podTemplate: unknown, name = "test") => {
  const run = parse(BASE);
  return { ...run, metadata: { name }, spec: { ...run.spec, [part]: { podTemplate } } };
};
const create = (run: unknown, query: string): Promise<Answer> => server.call("POST", `${RUNS}?${query}`, run);

const pods = { matchLabels: { app: "a" }, matchExpressions: [{ key: "b", operator: "In", values: ["c"] }] };
const near = {
  ...{ labelSelector: pods, namespaceSelector: pods, namespaces: ["a"], topologyKey: "zone" },
  ...{ matchLabelKeys: ["c"], mismatchLabelKeys: ["d"] },
};
const onPods = {
  requiredDuringSchedulingIgnoredDuringExecution: [near],
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: near }],
};
const term = {
  matchExpressions: [{ key: "gpu", operator: "Gt", values: ["1"] }],
  matchFields: [{ key: "metadata.name", operator: "In", values: ["node"] }],
};
const profiles = {
  seccompProfile: { type: "Localhost", localhostProfile: "profiles/namespaces.json" },
  appArmorProfile: { type: "Localhost", localhostProfile: "longrun" },
};
const env = [
  { name: "LOG_LEVEL", value: "debug" },
  { name: "B", valueFrom: { configMapKeyRef: { name: "settings", key: "b", optional: true } } },
];
/** Every field that both parts have. */
const common = {
  nodeSelector: { gpu: "yes" },
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: term }],
    },
    podAffinity: onPods,
    podAntiAffinity: onPods,
  },
  tolerations: [
    { key: "gpu", operator: "Exists", effect: "NoSchedule" },
    { key: "spot", operator: "Equal", value: "yes", effect: "NoExecute", tolerationSeconds: 60 },
  ],
  topologySpreadConstraints: [
    {
      ...{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: pods, minDomains: 2 },
      ...{ nodeAffinityPolicy: "Honor", nodeTaintsPolicy: "Ignore", matchLabelKeys: ["e"] },
    },
  ],
  priorityClassName: "high",
  schedulerName: "gang",
  schedulingGates: [{ name: "example.com/gate" }],
  resourceClaims: [
    { name: "gpus", resourceClaimTemplateName: "two-gpus" },
    { name: "shared", resourceClaimName: "link" },
  ],
  imagePullSecrets: [{ name: "registry" }],
  hostAliases: [{ ip: "10.0.0.1", hostnames: ["registry.local"] }],
  dnsPolicy: "None",
  dnsConfig: { nameservers: ["10.0.0.2"], searches: ["local"], options: [{ name: "ndots", value: "2" }] },
  hostUsers: false,
};
const metadata = { labels: { team: "ml" }, annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" } };
const ALL: Record<Part, object> = {
  learner: {
    metadata,
    spec: {
      ...common,
      runtimeClassName: "nvidia",
      securityContext: {
        ...{ runAsUser: 2000, runAsGroup: 2000, fsGroup: 2000, fsGroupChangePolicy: "Always" },
        ...{ supplementalGroups: [5000], ...profiles },
      },
      containers: [
        {
          name: "learner",
          env,
          volumeMounts: ["a", "b", "c", "d"].map((name) => ({
            ...{ name, mountPath: `/mnt/${name}`, subPath: "x/y", readOnly: true },
          })),
        },
      ],
      volumes: [
        { name: "a", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } },
        { name: "b", persistentVolumeClaim: { claimName: "models", readOnly: true } },
        { name: "c", configMap: { name: "settings", optional: true, items: [{ key: "a", path: "b/c" }] } },
        { name: "d", image: { reference: "registry/models:1", pullPolicy: "IfNotPresent" } },
      ],
    },
  },
  actors: {
    metadata,
    spec: { ...common, securityContext: profiles, containers: [{ name: "supervisor", env }] },
  },
};

describe("A podTemplate", { skip }, () => {
  for (const part of ["learner", "actors"] as const) {
    test(`The API server stores the podTemplate of ${part} unchanged`, async () => {
      const { code, body } = await create(runWith(part, ALL[part]), "dryRun=All&fieldValidation=Strict");
      assert.equal(code, 201, body.message);
      assert.deepEqual(body.spec[part].podTemplate, ALL[part]);
    });
  }

  test("The case has all fields of the schema", () => {
    /** Returns paths of the schema without a value; for a list, the fields of all items count. */
    const missingOf = (schema: Schema, value: unknown, at: string): string[] => {
      if (schema.items) return missingOf(schema.items, Object.assign({}, ...(value as object[])), at);
      return Object.entries(schema.properties ?? {}).flatMap(([name, below]) => {
        const given = (value as Record<string, unknown>)[name];
        return given === undefined ? [`${at}.${name}`] : missingOf(below, given, `${at}.${name}`);
      });
    };
    const { properties } = readSchema().properties!.spec!;
    const missing = (["learner", "actors"] as const).flatMap((part) =>
      missingOf(properties![part]!.properties!.podTemplate!, ALL[part], part),
    );
    assert.deepEqual(missing, []);
  });

  test("The API server accepts the Deployment and the Job that it makes", async () => {
    const run = runOf({ learner: { podTemplate: ALL.learner }, actors: { podTemplate: ALL.actors } });
    const inputs = { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS } as const;
    for (const [kind, child] of [
      ["apps/v1/namespaces/default/deployments", desiredLearner(run, inputs)],
      ["batch/v1/namespaces/default/jobs", desiredActor(run, 0, 0, DEFAULT_SETTINGS)],
    ] as const) {
      const object = { ...child, metadata: { ...child.metadata, namespace: "default" } };
      const { code, body } = await server.call("POST", `/apis/${kind}?dryRun=All&fieldValidation=Strict`, object);
      assert.equal(code, 201, body.message);
    }
  });
});

/** Each with the path below podTemplate that the answer names. */
const container = (text: string): [spec: string, path: string] => [
  `{containers: [{name: NAME, ${text}}]}`,
  `spec.containers[0].${text.split(":")[0]}`,
];
const security = (text: string): [spec: string, path: string] => [
  `{securityContext: {${text}}}`,
  `spec.securityContext.${text.split(":")[0]}`,
];
const UNKNOWN: [spec: string, path: string][] = [
  ...["nodeSelectr: {a: b}", "nodeName: a", "hostNetwork: true", "hostPID: true", "hostIPC: true"].map(top),
  ...["shareProcessNamespace: true", "serviceAccountName: a", "serviceAccount: a", "enableServiceLinks: true"].map(top),
  ...["automountServiceAccountToken: true", "ephemeralContainers: []", "initContainers: [{name: a}]"].map(top),
  ...["restartPolicy: Always", "terminationGracePeriodSeconds: 0", "activeDeadlineSeconds: 9", "overhead: {}"].map(top),
  container("image: a"),
  container("command: [sh]"),
  container("args: [a]"),
  container("resources: {}"),
  container("ports: [{containerPort: 80, hostPort: 80}]"),
  container("lifecycle: {postStart: {exec: {command: [sh]}}}"),
  container("securityContext: {privileged: true}"),
  container("envFrom: [{secretRef: {name: a}}]"),
  container("volumeDevices: []"),
  ...["privileged: true", "capabilities: {drop: []}", "procMount: Unmasked", "runAsNonRoot: false"].map(security),
  ...["sysctls: [{name: a, value: b}]", "seLinuxOptions: {type: spc_t}", "windowsOptions: {}"].map(security),
  ...["allowPrivilegeEscalation: true", "readOnlyRootFilesystem: false"].map(security),
  [
    "{containers: [{name: NAME, env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}",
    "spec.containers[0].env[0].valueFrom.secretKeyRef",
  ],
  [
    "{containers: [{name: NAME, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}]}",
    "spec.containers[0].env[0].valueFrom.fieldRef",
  ],
  ["{affinity: {nodeAfinity: {}}}", "spec.affinity.nodeAfinity"],
  ["{tolerations: [{kee: a}]}", "spec.tolerations[0].kee"],
];
const ONLY_ACTORS: [spec: string, path: string][] = [
  ...["volumes: [{name: a, emptyDir: {}}]", "runtimeClassName: runc"].map(top),
  container("volumeMounts: [{name: tls, mountPath: /mnt/tls}]"),
  ...["runAsUser: 10003", "runAsGroup: 10003", "fsGroup: 10003", "supplementalGroups: [10003]"].map(security),
];
const ONLY_LEARNER: [spec: string, path: string][] = [
  ...["hostPath: {path: /}", "secret: {secretName: a}", "nfs: {server: a, path: /}", "csi: {driver: a}"],
  ...["projected: {sources: [{serviceAccountToken: {path: a}}]}", "downwardAPI: {}", "ephemeral: {}", "iscsi: {}"],
].map((source) => [`{volumes: [{name: a, ${source}}]}`, `spec.volumes[0].${source.split(":")[0]}`]);

function top(text: string): [spec: string, path: string] {
  return [`{${text}}`, `spec.${text.split(":")[0]}`];
}

/** Returns the controller's messages. */
const controllerSays = (part: Part, podTemplate: object): string[] => podTemplateProblems(part, podTemplate);

const problemsOf = (run: unknown): string[] => {
  try {
    parseTrainingRun(JSON.stringify(run), "f", [], { cluster: true });
    return [];
  } catch (error) {
    assert.ok(error instanceof ManifestError);
    return error.problems;
  }
};

describe("An unknown field is named, whoever sends it", { skip, concurrency: 4 }, () => {
  for (const part of ["learner", "actors"] as const)
    for (const [text, below] of [...UNKNOWN, ...(part === "learner" ? ONLY_LEARNER : ONLY_ACTORS)]) {
      const spec = parse(text.replaceAll("NAME", CONTAINER[part]));
      const run = runWith(part, { spec });
      const path = `spec.${part}.podTemplate.${below}`;
      test(path, async () => {
        const strict = await create(run, "dryRun=All&fieldValidation=Strict");
        assert.equal(strict.code, 400, "kubectl's default");
        assert.ok(strict.body.message.includes(`unknown field "${path}"`), strict.body.message);

        const applied = await server.call(
          "APPLY",
          `${RUNS}/test?dryRun=All&fieldManager=t&fieldValidation=Ignore`,
          run,
        );
        assert.notEqual(applied.code, 201, "server-side apply refuses it at any level of validation");
        assert.ok(applied.body.message.includes("field not declared in schema"), applied.body.message);

        const other = await create(run, "dryRun=All");
        assert.ok(
          other.warnings.some((warning) => warning.includes(path)),
          `${other.warnings}`,
        );
        if (other.code === 201) {
          const stored = JSON.stringify(other.body.spec[part].podTemplate);
          assert.ok(!stored.includes(`"${below.split(".").at(-1)}"`), stored);
        } else assert.match(causesOf(other).join(), /give (exactly one|value)/);

        assert.ok(
          problemsOf(run).some((problem) => problem.startsWith(`f:1: ${path} is unknown; `)),
          `${problemsOf(run)}`,
        );
        assert.ok(controllerSays(part, { spec }).some((problem) => problem.startsWith(`${path} is unknown; `)));
      });
    }
});

describe("values that loosen a pod are refused with field, value and remedy", { skip, concurrency: 4 }, () => {
  const CASES: [spec: string, cause: RegExp][] = [
    [
      "{securityContext: {seccompProfile: {type: Unconfined}}}",
      /^spec\.securityContext\.seccompProfile\.type: Unsupported value: "Unconfined": supported values: "RuntimeDefault", "Localhost"$/,
    ],
    [
      "{securityContext: {appArmorProfile: {type: Unconfined}}}",
      /^spec\.securityContext\.appArmorProfile\.type: Unsupported value: "Unconfined": supported values: "RuntimeDefault", "Localhost"$/,
    ],
    [
      "{containers: [{name: sidecar}]}",
      /^spec\.containers\[0\]\.name: Unsupported value: "sidecar": supported values: "(learner|supervisor)"$/,
    ],
    ["{containers: [{name: sandbox-0}]}", /^spec\.containers\[0\]\.name: Unsupported value: "sandbox-0"/],
    ["{dnsPolicy: ClusterFirstWithHostNet}", /^spec\.dnsPolicy: Unsupported value/],
  ];
  const OF_LEARNER: [spec: string, cause: RegExp][] = [
    ...["runAsUser", "runAsGroup", "fsGroup"].map((id): [string, RegExp] => [
      `{securityContext: {${id}: 0}}`,
      new RegExp(`^spec\\.securityContext\\.${id}: .* should be greater than or equal to 1$`),
    ]),
    [
      "{securityContext: {supplementalGroups: [0]}}",
      /^spec\.securityContext\.supplementalGroups\[0\]: .* should be greater than or equal to 1$/,
    ],
  ];
  for (const part of ["learner", "actors"] as const)
    for (const [text, cause] of [...CASES, ...(part === "learner" ? OF_LEARNER : [])])
      test(`${part}: ${text}`, async () => {
        const run = runWith(part, { spec: parse(text) });
        const answer = await create(run, "dryRun=All&fieldValidation=Strict");
        assert.equal(answer.code, 422, answer.body.message);
        const below = causesOf(answer).map((it) => it.replace(`spec.${part}.podTemplate.`, ""));
        assert.ok(
          below.some((it) => cause.test(it)),
          below.join("\n"),
        );
        const path = below.find((it) => cause.test(it))!.split(": ")[0]!;
        assert.ok(problemsOf(run).some((problem) => problem.includes(`spec.${part}.podTemplate.${path} is `)));
        assert.ok(
          controllerSays(part, run.spec[part].podTemplate).some((problem) =>
            problem.includes(`podTemplate.${path} is `),
          ),
        );
      });
});

describe("the CRD", { skip }, () => {
  test("The CRD fits the annotation of kubectl apply, and leaves a fifth of it free", () => {
    const bytes = JSON.stringify(parse(readFileSync(CRD_FILE, "utf8"))).length;
    assert.ok(bytes < 0.8 * ANNOTATION_BYTES, `${bytes} bytes`);
  });

  test("A run of an older CRD with a name and a podTemplate that are now refused can be changed and deleted", async () => {
    const crd = parse(readFileSync(CRD_FILE, "utf8"));
    const path = `${CRDS}/${crd.metadata.name}`;
    const schema = crd.spec.versions[0].schema.openAPIV3Schema;
    const rules = schema["x-kubernetes-validations"];
    const { podTemplate } = schema.properties.spec.properties.actors.properties;
    const replace = async (to: unknown): Promise<void> => {
      const { code, body } = await server.call("PATCH", path, { spec: { versions: [to] } });
      assert.equal(code, 200, body.message);
    };
    const served = (query: string, code: number) => async () => {
      const answer = await create({ ...runWith("actors", {}), metadata: { name: "7a" } }, query);
      return answer.code === code;
    };
    const older = structuredClone(crd.spec.versions[0]);
    delete older.schema.openAPIV3Schema["x-kubernetes-validations"];
    const { actors } = older.schema.openAPIV3Schema.properties.spec.properties;
    delete actors["x-kubernetes-validations"];
    actors.properties.podTemplate = {
      ...{ type: "object", "x-kubernetes-preserve-unknown-fields": true },
    };
    await replace(older);
    await eventually(served("dryRun=All", 201));
    const containers = [{ name: "sidecar", image: "a", env: [{ name: "A", valueFrom: { secretKeyRef: {} } }] }];
    const old = { spec: { hostNetwork: true, nodeSelector: { a: "b" }, containers } };
    const run = runWith("actors", old, "7a");
    const made = await create({ ...run, metadata: { name: "7a", finalizers: ["longrun.dev/run"] } }, "");
    assert.equal(made.code, 201, made.body.message);
    assert.deepEqual(made.body.spec.actors.podTemplate, old);

    schema["x-kubernetes-validations"] = rules;
    schema.properties.spec.properties.actors.properties.podTemplate = podTemplate;
    await replace(crd.spec.versions[0]);
    await eventually(served("dryRun=All", 422));
    const found = (await server.call("GET", `${RUNS}/7a`)).body;
    const left = [{ name: "sidecar", env: [{ name: "A", valueFrom: {} }] }];
    const now = { spec: { nodeSelector: { a: "b" }, containers: left } };
    assert.deepEqual(found.spec.actors.podTemplate, now, "other fields are left out");
    assert.match(controllerSays("actors", now).join(), /containers\[0\]\.name is "sidecar"; give supervisor/);
    const status = await server.call("PUT", `${RUNS}/7a/status`, { ...found, status: { phase: "Running" } });
    assert.equal(status.code, 200, status.body.message);
    await server.call("DELETE", `${RUNS}/7a`);
    const freed = await server.call("PATCH", `${RUNS}/7a`, { metadata: { finalizers: [] } });
    assert.equal(freed.code, 200, freed.body.message);
    assert.equal((await server.call("GET", `${RUNS}/7a`)).code, 404);
  });
});

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, "the API server serves the CRD");
    await sleep(100);
  }
}
