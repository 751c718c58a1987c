import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { runOf } from "../run.fixture.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./access.ts";
import { actorHash, desiredActor, slotOf } from "./actors.ts";
import { desiredConfigMap } from "./config-map.ts";
import { desiredInit } from "./init.ts";
import { desiredDisruptionBudget, desiredLearner, desiredService } from "./learner.ts";
import { desiredModelJob } from "./model.ts";
import { actorName, digestOf, parseActorName, type Run } from "./names.ts";
import { mergeStrategically, overlay } from "./pod.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";
import { defaultStorageClass, desiredVolume } from "./volume.ts";

const claim = (claimName: string, subPath = "") => ({ persistentVolumeClaim: { claimName, subPath } });
const CUSTOM = {
  tasks: [
    {
      name: "own",
      publicData: claim("data", "public"),
      privateData: claim("data", "private"),
      grader: { metric: "RMSE", idColumn: "id", targetColumns: ["y"], direction: "Lower" },
    },
  ],
};

const SEVERAL = {
  tasks: [
    CUSTOM.tasks[0]!,
    { name: "diamonds" },
    {
      ...CUSTOM.tasks[0]!,
      ...{ name: "other", sandboxImage: "ours", weight: 2 },
      ...{ publicData: claim("more", "open"), privateData: claim("more", "answers") },
    },
  ],
  actors: { sandboxImage: "ours" },
};

const learnerOf = (run: Run) =>
  desiredLearner(run, { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS });
const actorOf = (run: Run) => desiredActor(run, 0, 0, DEFAULT_SETTINGS);
const podsOf = (run: Run) => ({
  learner: learnerOf(run).spec!.template.spec!,
  actor: actorOf(run).spec!.template.spec!,
  init: desiredInit(run, "quick-data", "other-data", DEFAULT_SETTINGS).spec!.template.spec!,
});
const configOf = (run: Run) => parse(desiredConfigMap(run).data!["trainingrun.yaml"]!);

describe("an actor that is evicted", () => {
  const graceOf = (executionTimeoutSeconds: number, actors: object = {}) => {
    const pod = podsOf(runOf({ tasks: [{ name: "diamonds", executionTimeoutSeconds }], actors })).actor;
    const finish = pod.containers[0]!.env?.find(({ name }) => name === "LONGRUN_FINISH_SECONDS")?.value;
    return { grace: pod.terminationGracePeriodSeconds, finish };
  };
  const CASES: [what: string, found: ReturnType<typeof graceOf>, grace: number, finish: string][] = [
    ["has time for its program, and to hand in", graceOf(120), 130, "120"],
    ["has no more than actors.evictionGraceSeconds", graceOf(7200), 610, "600"],
    ["as the run says", graceOf(7200, { evictionGraceSeconds: 3600, stopGraceSeconds: 2.5 }), 3603, "3600"],
    ["gives back at once", graceOf(7200, { evictionGraceSeconds: 0 }), 10, "0"],
  ];
  for (const [what, found, grace, finish] of CASES) test(what, () => assert.deepEqual(found, { grace, finish }));

  test("is not made again by its Job: another pod would be another actor of the same name", () =>
    assert.deepEqual(
      actorOf(runOf()).spec!.podFailurePolicy!.rules.map(({ action }) => action),
      ["FailJob", "FailJob"],
    ));
});

describe("pods", () => {
  for (const [name, run] of Object.entries({ bundled: runOf(), custom: runOf(CUSTOM) }))
    for (const [part, pod] of Object.entries(podsOf(run)))
      test(`the ${part} of a ${name} task fits the restricted level and has no token`, () => {
        assert.equal(pod.automountServiceAccountToken, false);
        assert.equal(pod.securityContext?.runAsNonRoot, true);
        assert.equal(pod.securityContext?.seccompProfile?.type, "RuntimeDefault");
        for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
          assert.deepEqual(container.securityContext?.capabilities?.drop, ["ALL"]);
          assert.equal(container.securityContext?.allowPrivilegeEscalation, false);
          assert.equal(container.securityContext?.readOnlyRootFilesystem, true);
        }
        for (const volume of pod.volumes ?? []) assert.equal(volume.hostPath, undefined);
      });

  test("answers are mounted in the learner and nowhere else", () => {
    const { learner, actor } = podsOf(runOf(CUSTOM));
    const answers = learner.containers[0]!.volumeMounts!.find(({ name }) => name === "private-data");
    assert.deepEqual(
      { path: answers?.mountPath, subPath: answers?.subPath, readOnly: answers?.readOnly },
      { path: "/tasks/own/prepared/private", subPath: "private", readOnly: true },
    );
    assert.doesNotMatch(JSON.stringify(actor), /private/);
  });

  test("the learner alone is in the group that reads the bundled tasks' answers", () => {
    const { learner, actor } = podsOf(runOf());
    assert.deepEqual(learner.securityContext?.supplementalGroups, [10003]);
    assert.equal(actor.securityContext?.supplementalGroups, undefined);
  });

  test("a sandbox has no secret, and every volume of its own but the public data", () => {
    const pod = actorOf(runOf({ ...CUSTOM, actors: { slots: 3 } })).spec!.template.spec!;
    assert.deepEqual(
      pod.initContainers!.map(({ name }) => name),
      ["sandbox-0", "sandbox-1", "sandbox-2"],
    );
    const seen = new Set<string>();
    for (const { volumeMounts, restartPolicy, securityContext } of pod.initContainers!) {
      assert.equal(restartPolicy, "Always");
      assert.equal(securityContext?.runAsUser, 10002);
      for (const { name, subPath = "" } of volumeMounts!.filter((it) => it.name !== "public-data")) {
        assert.notEqual(name, "tls");
        assert.ok(!seen.has(`${name}/${subPath}`), `${name}/${subPath} is shared`);
        seen.add(`${name}/${subPath}`);
      }
    }
    const secrets = pod.volumes!.filter(({ secret }) => secret).map(({ name }) => name);
    assert.deepEqual(secrets, ["tls"]);
    assert.deepEqual(
      pod.containers[0]!.volumeMounts!.map(({ name }) => name),
      ["tls", "sandboxes", "supervisor-tmp"],
    );
  });

  test("each of several tasks has its own folder and data; no actor has an answer", () => {
    const run = runOf(SEVERAL);
    const { learner, actor } = podsOf(run);
    const paths = ["/tasks/own/prepared", "/tasks/other/prepared"];
    const mountsOf = (container: { volumeMounts?: { name: string; mountPath: string; subPath?: string }[] }) =>
      container.volumeMounts!.filter(({ mountPath }) => mountPath.startsWith("/tasks/"));
    const mounted = mountsOf(learner.containers[0]!);
    assert.deepEqual(
      mounted.map(({ mountPath, subPath }) => `${mountPath} ${subPath}`),
      paths.flatMap((path, i) => [
        ...[`${path}/public ${["public", "open"][i]}`, `${path}/private ${["private", "answers"][i]}`],
        `${path.replace("/prepared", "")}/task.yaml task-${["own", "other"][i]}.yaml`,
      ]),
    );
    assert.match(
      learner.containers[0]!.args!.join(" "),
      /--task-dir \/tasks\/own --task-dir \S+\/diamonds --task-dir \/tasks\/other$/,
    );
    for (const pod of [learner, actor])
      assert.equal(new Set(pod.volumes!.map(({ name }) => name)).size, pod.volumes!.length);
    for (const sandbox of actor.initContainers!)
      assert.deepEqual(
        mountsOf(sandbox).map(({ mountPath }) => mountPath),
        paths.map((path) => `${path}/public`),
      );
    assert.doesNotMatch(JSON.stringify(actor), /private|answers/);
    assert.match(
      actor.containers[0]!.args!.join(" "),
      /--inputs own=\S+,diamonds=\S+,other=\/tasks\/other\/prepared\/public/,
    );
  });

  test("a runtime class is passed through, and none is named without it", () => {
    assert.equal(podsOf(runOf()).actor.runtimeClassName, undefined);
    for (const runtimeClassName of ["gvisor", "kata"])
      assert.equal(podsOf(runOf({ actors: { runtimeClassName } })).actor.runtimeClassName, runtimeClassName);
  });

  const ARGUMENTS: [what: string, spec: object, part: "learner" | "actor", expected: RegExp][] = [
    ["a bundled task", {}, "learner", /--task-dir \/opt\/longrun-tasks\/diamonds/],
    ["a custom task", CUSTOM, "learner", /--task-dir \/tasks\/own/],
    ["the manifest", {}, "learner", /--run \/data\/run --manifest \/config\/trainingrun\.yaml --tls \/tls --stay/],
    ["ports", {}, "learner", /--listen 0\.0\.0\.0:7443 --metrics-listen 0\.0\.0\.0:9400/],
    [
      "the learner's address",
      {},
      "actor",
      /--learner quick-learner\.team\.svc:7443 --tls \/tls --name quick-actor-0-0/,
    ],
    ["slots", { actors: { slots: 4 } }, "actor", /--slots 4 --sandboxes \/sandboxes/],
    ["inputs", {}, "actor", /--inputs diamonds=\/opt\/longrun-tasks\/diamonds\/prepared\/public$/],
    ["inputs of a custom task", CUSTOM, "actor", /--inputs own=\/tasks\/own\/prepared\/public$/],
    ["a pod for each execution", { actors: { isolation: "Pod" } }, "actor", /--executions 1$/],
    ["no isolation", { actors: { requireIsolation: false } }, "actor", /--allow-no-isolation$/],
  ];
  for (const [what, spec, part, expected] of ARGUMENTS)
    test(`arguments: ${what}`, () => assert.match(podsOf(runOf(spec))[part].containers[0]!.args!.join(" "), expected));

  const MIB = 2 ** 20;
  test("with torch imported a sandbox has more", () => {
    const [sandbox] = actorOf(runOf({ actors: { packages: "Paper" } })).spec!.template.spec!.initContainers!;
    assert.deepEqual(sandbox!.resources!.limits, { memory: String(5120 * MIB) });
  });

  test("a learner without resources requests some, and else has its own alone", () => {
    const resources = (own: object) =>
      learnerOf(runOf({ learner: { resources: own } })).spec!.template.spec!.containers[0]!.resources;
    assert.deepEqual(resources({}), { requests: { cpu: "500m", memory: "1Gi" } });
    assert.deepEqual(resources({ requests: { cpu: "4" } }), { requests: { cpu: "4" } });
    assert.deepEqual(resources({ limits: { memory: "2Gi" } }), { limits: { memory: "2Gi" } });
  });

  const SCRATCH = { "ephemeral-storage": String(1024 * MIB) };
  const MEMORY: [sandboxResources: object, requests: object, limits: object][] = [
    [{}, { memory: String(4608 * MIB), ...SCRATCH }, { memory: String(4608 * MIB) }],
    [{ requests: { cpu: "1" } }, { memory: String(4608 * MIB), ...SCRATCH, cpu: "1" }, { memory: String(4608 * MIB) }],
    [{ limits: { memory: "8Gi" } }, SCRATCH, { memory: "8Gi" }],
    [{ requests: { memory: "6Gi" }, limits: { memory: "8Gi" } }, { memory: "6Gi", ...SCRATCH }, { memory: "8Gi" }],
    [{ limits: { memory: "8Gi", "ephemeral-storage": "10Gi" } }, {}, { memory: "8Gi", "ephemeral-storage": "10Gi" }],
    [
      { requests: { "ephemeral-storage": "10Gi" } },
      { memory: String(4608 * MIB), "ephemeral-storage": "10Gi" },
      { memory: String(4608 * MIB) },
    ],
  ];
  for (const [sandboxResources, requests, limits] of MEMORY)
    test(`a sandbox with ${JSON.stringify(sandboxResources)} has memory above what an execution may use, and room for its files`, () => {
      const { resources } = actorOf(runOf({ actors: { sandboxResources } })).spec!.template.spec!.initContainers![0]!;
      assert.deepEqual(resources, { requests, limits });
    });

  test("images and pull policies: the run's, else the controller's", () => {
    const own = podsOf(
      runOf({ learner: { image: "l", imagePullPolicy: "Always" }, actors: { image: "a", sandboxImage: "s" } }),
    );
    assert.deepEqual(
      [
        own.learner.containers[0]!.image,
        own.learner.containers[0]!.imagePullPolicy,
        own.actor.containers[0]!.image,
        own.actor.initContainers![0]!.image,
      ],
      ["l", "Always", "a", "s"],
    );
    const { learner, actor } = podsOf(runOf());
    assert.equal(learner.containers[0]!.image, DEFAULT_SETTINGS.image);
    assert.equal(actor.containers[0]!.image, DEFAULT_SETTINGS.actorImage);
    assert.equal(actor.initContainers![0]!.image, DEFAULT_SETTINGS.sandboxImage);
    assert.equal(actor.initContainers![0]!.imagePullPolicy, DEFAULT_SETTINGS.imagePullPolicy);
  });
});

describe("overlay", () => {
  const CASES: [what: string, base: object, patch: object, expected: object][] = [
    ["a field", { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ["null removes", { a: 1, b: 2 }, { b: null }, { a: 1 }],
    [
      "containers by name",
      { containers: [{ name: "x", image: "1" }] },
      { containers: [{ name: "x", tty: true }, { name: "y" }] },
      { containers: [{ name: "x", image: "1", tty: true }, { name: "y" }] },
    ],
    [
      "mounts by path",
      { volumeMounts: [{ mountPath: "/a", name: "a" }] },
      { volumeMounts: [{ mountPath: "/a", name: "b" }] },
      { volumeMounts: [{ mountPath: "/a", name: "b" }] },
    ],
    [
      "volumes and variables by name, each with one source",
      { volumes: [{ name: "a", emptyDir: {} }], env: [{ name: "A", value: "1" }] },
      { volumes: [{ name: "a", image: {} }], env: [{ name: "A", valueFrom: {} }, { name: "B" }] },
      { volumes: [{ name: "a", image: {} }], env: [{ name: "A", valueFrom: {} }, { name: "B" }] },
    ],
    [
      "groups to the pod's own",
      { supplementalGroups: [1] },
      { supplementalGroups: [2, 1] },
      { supplementalGroups: [1, 2] },
    ],
    ["other lists whole", { args: ["a", "b"] }, { args: ["c"] }, { args: ["c"] }],
  ];
  for (const [what, base, patch, expected] of CASES)
    test(what, () => assert.deepEqual(mergeStrategically(base, patch), expected));

  test("longrun's own labels win", () => {
    const merged = overlay(
      { metadata: { labels: { a: "ours" } } },
      { metadata: { labels: { a: "theirs", b: "theirs" } } },
    );
    assert.deepEqual(merged.metadata.labels, { a: "ours", b: "theirs" });
  });

  test("a container that the pod does not have is not added", () => {
    const template = { spec: { containers: [{ name: "copy" }] } };
    const podTemplate = { spec: { nodeSelector: { a: "b" }, containers: [{ name: "learner" as const }] } };
    assert.deepEqual(overlay(template, podTemplate).spec, { ...template.spec, nodeSelector: { a: "b" } });
  });

  test("a podTemplate reaches the pods, and rolls them", () => {
    const podTemplate = { spec: { nodeSelector: { gpu: "yes" } } };
    const run = runOf({ learner: { podTemplate }, actors: { podTemplate } });
    assert.deepEqual(learnerOf(run).spec!.template.spec!.nodeSelector, { gpu: "yes" });
    assert.deepEqual(actorOf(run).spec!.template.spec!.nodeSelector, { gpu: "yes" });
    const hash = (it: Run) => learnerOf(it).metadata.annotations!["longrun.dev/spec-hash"];
    assert.notEqual(hash(run), hash(runOf()));
    assert.notEqual(actorHash(run, DEFAULT_SETTINGS), actorHash(runOf(), DEFAULT_SETTINGS));
  });
});

describe("what a podTemplate cannot touch", () => {
  test("the names of longrun's own volumes in the learner's pod, which the rule of the CRD lists", () => {
    const run = runOf({ ...CUSTOM, model: { policy: "big/model", volume: claim("models") } });
    for (const { name } of podsOf(run).learner.volumes!) {
      const podTemplate = { spec: { volumes: [{ name, emptyDir: {} }] } };
      assert.throws(() => runOf({ learner: { podTemplate } }), /are longrun's own; choose another name/, name);
    }
  });

  test("the learner's groups: it reads the answers still", () => {
    const podTemplate = { spec: { securityContext: { supplementalGroups: [5000] } } };
    const { securityContext } = podsOf(runOf({ learner: { podTemplate } })).learner;
    assert.deepEqual(securityContext?.supplementalGroups, [10003, 5000]);
  });

  test("sandboxes: what an actor gets more is the supervisor's alone", () => {
    const env = [{ name: "LOG_LEVEL", value: "debug" }];
    const podTemplate = { spec: { containers: [{ name: "supervisor", env }] } };
    const { actor } = podsOf(runOf({ actors: { podTemplate, slots: 2 } }));
    const has = [...actor.containers, ...actor.initContainers!].filter(({ env }) =>
      env?.some(({ name }) => name === "LOG_LEVEL"),
    );
    assert.deepEqual(
      has.map(({ name }) => name),
      ["supervisor"],
    );
  });
});

describe("configuration", () => {
  test("is a manifest that the learner accepts", () => {
    for (const spec of [
      {},
      CUSTOM,
      { initFrom: { run: "other" } },
      { model: { policy: "big/model", volume: claim("models") } },
    ]) {
      const data = desiredConfigMap(runOf(spec)).data!;
      parseTrainingRun(data["trainingrun.yaml"]!, "config");
    }
  });

  const IRRELEVANT: object[] = [
    { suspend: true },
    { ttlSecondsAfterFinished: 5 },
    { notifications: { webhook: { url: "https://hooks.test/a" } } },
    { actors: { max: 9, min: 2, scaleDownSeconds: 1, image: "x", podTemplate: { spec: {} }, evictionGraceSeconds: 9 } },
    { learner: { image: "x", resources: { requests: { cpu: "2" } }, storage: { retain: "Never" } } },
  ];
  for (const spec of IRRELEVANT)
    test(`does not change with ${JSON.stringify(spec)}: the learner is not restarted`, () =>
      assert.deepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data));

  test("changes with what the learner reads", () => {
    for (const spec of [
      { stopping: { iterations: 3 } },
      { actors: { idleSeconds: 5 } },
      { learner: { leaseSeconds: 90 } },
    ])
      assert.notDeepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data);
  });

  test("is the same text whatever order the fields come in", () => {
    const run = runOf();
    const reversed = { ...run, spec: Object.fromEntries(Object.entries(run.spec).reverse()) } as Run;
    assert.deepEqual(desiredConfigMap(reversed).data, desiredConfigMap(run).data);
  });

  test("a custom task brings its task.yaml and finds its data where it is mounted", () => {
    const run = runOf(CUSTOM);
    assert.equal(configOf(run).spec.tasks[0].privateData.path, "/tasks/own/prepared/private");
    assert.equal(parse(desiredConfigMap(run).data!["task.yaml"]!).grader.metric, "RMSE");
    assert.equal(desiredConfigMap(runOf()).data!["task.yaml"], undefined);
  });

  test("of several tasks each custom one has its task.yaml; the sandbox's image is no business of the learner's", () => {
    const { data } = desiredConfigMap(runOf(SEVERAL));
    assert.deepEqual(Object.keys(data!).sort(), ["task-other.yaml", "task-own.yaml", "trainingrun.yaml"]);
    const { tasks } = configOf(runOf(SEVERAL)).spec;
    assert.deepEqual(
      tasks.map((task: { weight?: number; sandboxImage?: string }) => [task.weight, task.sandboxImage]),
      [
        [undefined, undefined],
        [undefined, undefined],
        [2, undefined],
      ],
    );
    assert.doesNotThrow(() => parseTrainingRun(data!["trainingrun.yaml"]!, "config"));
  });

  test("initFrom.run is the copy on the run's own volume", () =>
    assert.deepEqual(configOf(runOf({ initFrom: { run: "other" } })).spec.initFrom, { path: "/data/init" }));
});

test("the copy of a checkpoint asks for what a quota of cpu and memory counts, since no field of the spec does", () => {
  const { requests, limits } = podsOf(runOf({ initFrom: { run: "other" } })).init.containers[0]!.resources!;
  for (const counted of [requests!, limits!]) assert.deepEqual(Object.keys(counted), ["cpu", "memory"]);
});

test("the learner's disruption budget refuses evictions with Protect alone", () => {
  const least = (learner: object) => desiredDisruptionBudget(runOf({ learner })).spec!.minAvailable;
  assert.deepEqual([least({}), least({ disruption: "Checkpoint" }), least({ disruption: "Protect" })], [0, 0, 1]);
});

describe("init", () => {
  const tolerations = [{ key: "gpu", operator: "Exists" }];
  const term = { matchExpressions: [{ key: "disk", operator: "Exists" }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } };
  const follows = {
    ...{ affinity, imagePullSecrets: [{ name: "registry" }], nodeSelector: { pool: "gpu" }, tolerations },
    ...{ priorityClassName: "high", runtimeClassName: "gvisor", schedulerName: "own" },
  };
  const others = {
    containers: [{ name: "learner", env: [{ name: "A", value: "1" }] }],
    volumes: [{ name: "more", emptyDir: {} }],
  };
  const initOf = (spec: object, resources: object = {}) =>
    desiredInit(
      runOf({ initFrom: { run: "other" }, learner: { podTemplate: { spec }, resources } }),
      ...(["quick-data", "other-data", DEFAULT_SETTINGS] as const),
    );

  test("goes where the learner goes, with its secrets of registries, and without its containers and GPU", () => {
    const pod = initOf({ ...follows, ...others }, { limits: { "nvidia.com/gpu": "1" } }).spec!.template.spec!;
    for (const [field, value] of Object.entries(follows)) assert.deepEqual(pod[field as "affinity"], value, field);
    assert.deepEqual([pod.containers.map(({ name }) => name), pod.initContainers], [["copy"], undefined]);
    assert.deepEqual(
      pod.volumes!.map(({ name }) => name),
      ["data", "source"],
    );
    assert.doesNotMatch(JSON.stringify(pod), /nvidia/);
  });

  test("is another one when that changes, and the same when anything else does", () => {
    const hash = (spec: object) => initOf(spec).metadata.annotations!["longrun.dev/spec-hash"];
    assert.notEqual(hash(follows), hash({}));
    assert.equal(hash({ ...follows, ...others }), hash(follows));
  });
});

describe("a model that is fetched", () => {
  const proxy = { HTTPS_PROXY: "http://proxy.test:3128", NO_PROXY: ".cluster.local" };
  const sourceOf = (change: object = {}, learner: object = {}) =>
    runOf({ model: { source: { huggingFace: { repo: "a/b", ...change } } }, learner });
  const jobOf = (run: Run) => desiredModelJob(run, "quick-data", { ...DEFAULT_SETTINGS, proxy });
  const secretRef = { name: "longrun-hub", key: "token" };

  test("is where the learner looks for its policy; nothing of the source starts a learner anew", () => {
    const { policy, source } = configOf(sourceOf({ secretRef })).spec.model;
    assert.deepEqual([policy, source], ["/data/model", undefined]);
    assert.deepEqual(configOf(sourceOf()), configOf(sourceOf({ secretRef, endpoint: "https://hub.test" })));
    assert.ok(podsOf(sourceOf()).learner.volumes!.every(({ name }) => name !== "model"));
  });

  test("the Job writes it to the run's volume, as its own account, with the token and the proxy", () => {
    const run = sourceOf({ revision: "v1", secretRef, endpoint: "https://hub.test" });
    const pod = jobOf(run).spec!.template.spec!;
    const [container] = pod.containers;
    assert.deepEqual(container!.args, ["fetch", "a/b", "--revision", "v1", "--out", "/data/model", "--json"]);
    assert.deepEqual(Object.fromEntries(container!.env!.map(({ name, value }) => [name, value])), {
      ...proxy,
      ...{ HF_ENDPOINT: "https://hub.test", HF_TOKEN_PATH: "/token/token" },
    });
    assert.deepEqual([pod.serviceAccountName, pod.automountServiceAccountToken], ["quick-model", false]);
    assert.deepEqual(
      pod.volumes!.map(({ persistentVolumeClaim, secret }) => persistentVolumeClaim?.claimName ?? secret?.secretName),
      ["quick-data", "longrun-hub"],
    );
    for (const other of Object.values(podsOf(run)))
      assert.doesNotMatch(JSON.stringify(other), /"longrun-hub"|hub\.test/);
    const [rule] = jobOf(run).spec!.podFailurePolicy!.rules;
    assert.deepEqual([rule!.action, rule!.onExitCodes!.values], ["FailJob", [2]]);
    const open = jobOf(sourceOf()).spec!.template.spec!;
    assert.deepEqual(
      open.volumes!.map(({ name }) => name),
      ["data"],
    );
  });

  test("the Job goes where the learner goes, and is another one when the token or the mirror is", () => {
    const nodeSelector = { pool: "gpu" };
    const job = jobOf(sourceOf({}, { podTemplate: { spec: { nodeSelector } } }));
    assert.deepEqual(job.spec!.template.spec!.nodeSelector, nodeSelector);
    const hash = (run: Run) => jobOf(run).metadata.annotations!["longrun.dev/spec-hash"];
    assert.equal(hash(sourceOf()), hash(sourceOf({}, { startSeconds: 9 })));
    for (const change of [{ secretRef }, { endpoint: "https://hub.test" }])
      assert.notEqual(hash(sourceOf()), hash(sourceOf(change)));
  });

  test("its account and its way out of the cluster are there for it alone", () => {
    const names = (run: Run) => desiredServiceAccounts(run).map(({ metadata: { name } }) => name);
    assert.deepEqual(names(sourceOf()), ["quick-learner", "quick-actor", "quick-model"]);
    assert.deepEqual(names(runOf()), ["quick-learner", "quick-actor"]);
    const policies = (run: Run, settings: object) => desiredNetworkPolicies(run, { ...DEFAULT_SETTINGS, ...settings });
    assert.equal(policies(runOf(), {}).length, 2);
    const [learner, , model] = policies(sourceOf({ endpoint: "http://hub.test:8080/mirror" }), { proxy });
    assert.equal(learner!.spec!.egress, undefined);
    assert.deepEqual(model!.spec!.podSelector!.matchLabels!["app.kubernetes.io/component"], "model");
    assert.deepEqual([model!.spec!.ingress, model!.spec!.policyTypes], [undefined, ["Ingress", "Egress"]]);
    const [out, dns] = model!.spec!.egress!;
    assert.deepEqual([out!.to, out!.ports!.map(({ port }) => port)], [undefined, [443, 3128, 8080]]);
    assert.deepEqual(
      dns!.ports!.map(({ port }) => port),
      [53, 53],
    );
  });
});

describe("a model of S3", () => {
  const sourceOf = (change: object) =>
    runOf({ model: { source: { s3: { bucket: "models", prefix: "team/qwen", ...change } } } });
  const podOf = (run: Run) => desiredModelJob(run, "quick-data", DEFAULT_SETTINGS).spec!.template.spec!;

  test("comes by the same Job, with the keys of its Secret and no other identity", () => {
    const pod = podOf(sourceOf({ endpoint: "https://s3.test", region: "eu-1", secretRef: { name: "longrun-s3" } }));
    const [container] = pod.containers;
    assert.deepEqual(container!.args, ["fetch", "s3://models/team/qwen", "--out", "/data/model", "--json"]);
    const env = container!.env!.map(({ name, value, valueFrom }) => [name, value ?? valueFrom!.secretKeyRef]);
    const key = (name: string) => ({ name: "longrun-s3", key: name });
    assert.deepEqual(Object.fromEntries(env), {
      ...{ AWS_ENDPOINT_URL_S3: "https://s3.test", AWS_REGION: "eu-1", AWS_EC2_METADATA_DISABLED: "true" },
      ...{ AWS_ACCESS_KEY_ID: key("AWS_ACCESS_KEY_ID"), AWS_SECRET_ACCESS_KEY: key("AWS_SECRET_ACCESS_KEY") },
      AWS_SESSION_TOKEN: { ...key("AWS_SESSION_TOKEN"), optional: true },
    });
    assert.equal(pod.serviceAccountName, "quick-model");
  });

  test("an account with a workload identity reaches the agent that hands out its credentials, and nobody else does", () => {
    const run = sourceOf({ serviceAccountName: "longrun-s3-a" });
    assert.deepEqual([podOf(run).serviceAccountName, podOf(run).containers[0]!.env], ["longrun-s3-a", []]);
    const egressOf = (of: Run) => desiredNetworkPolicies(of, DEFAULT_SETTINGS).at(-1)!.spec!.egress!;
    assert.match(JSON.stringify(egressOf(run)), /"cidr":"169\.254\.170\.23\/32"/);
    assert.doesNotMatch(JSON.stringify(egressOf(sourceOf({}))), /169\.254/);
  });

  test("nothing of spec.results starts a learner anew", () => {
    const results = { s3: { bucket: "results", prefix: "a" } };
    assert.deepEqual(configOf(runOf({ results })), configOf(runOf()));
  });
});

describe("size of the volume", () => {
  const claim = (size: string, phase: string) => ({
    ...{ metadata: { name: "quick-data" }, status: { phase } },
    spec: { resources: { requests: { storage: size } } },
  });
  const CASES: [what: string, present: ReturnType<typeof claim> | undefined, size: string][] = [
    ["a new claim", undefined, "100Gi"],
    ["one that is to grow", claim("50Gi", "Bound"), "100Gi"],
    ["one that grew by itself", claim("0.2Ti", "Bound"), "0.2Ti"],
    ["the same in other words", claim("102400Mi", "Bound"), "102400Mi"],
    ["one without a volume, which cannot grow yet", claim("50Gi", "Pending"), "50Gi"],
  ];
  for (const [what, present, size] of CASES)
    test(`${what}: ${size}`, () => {
      const run = runOf({ learner: { storage: { size: "100Gi" } } });
      const desired = desiredVolume(run, "quick-data", { succeeded: false, present: present as never });
      assert.deepEqual(desired.spec!.resources!.requests, { storage: size });
    });
  test("a run that names none has what its learner asks for, else 100Gi; what the run names counts more", () => {
    const sizeFor = (run: Run, wantedSize?: string) =>
      desiredVolume(run, "quick-data", { succeeded: false, wantedSize }).spec!.resources!.requests!.storage;
    assert.deepEqual([sizeFor(runOf()), sizeFor(runOf(), "297Gi")], ["100Gi", "297Gi"]);
    assert.equal(sizeFor(runOf({ learner: { storage: { size: "50Gi" } } }), "297Gi"), "50Gi");
  });
});

describe("volume", () => {
  const CASES: [retain: string, succeeded: boolean, goes: boolean][] = [
    ["Always", false, false],
    ["Always", true, false],
    ["OnSuccess", false, true],
    ["OnSuccess", true, false],
    ["Never", false, true],
    ["Never", true, true],
  ];
  for (const [retain, succeeded, goes] of CASES)
    test(`retain ${retain}, ${succeeded ? "succeeded" : "not succeeded"}: ${goes ? "goes" : "stays"}`, () => {
      const volume = desiredVolume(runOf({ learner: { storage: { retain } } }), "quick-data", { succeeded });
      assert.equal(volume.metadata.ownerReferences!.length, goes ? 1 : 0);
    });

  const CLASSES: [what: string, byDefault: string | undefined, claim: object | undefined, expected?: string][] = [
    ["a new claim has the administrator's class", "fast", undefined, "fast"],
    ["one that waits without a class gets it", "fast", {}, "fast"],
    ["one with a volume and no class stays so", "fast", { volumeName: "pv-1" }],
    ["a class stays when the administrator names another", "fast", { storageClassName: "slow" }, "slow"],
    ["a class stays when the administrator names none any more", undefined, { storageClassName: "slow" }, "slow"],
  ];
  for (const [what, className, spec, expected] of CLASSES)
    test(`storage class: ${what}`, () => {
      const defaults = className === undefined ? undefined : { learner: { storage: { className } } };
      const claim = spec && ({ metadata: { name: "quick-data" }, spec } as never);
      assert.equal(defaultStorageClass(defaults as never, claim), expected);
    });
});

describe("learner", () => {
  test("one at a time, and never two on one volume", () => {
    const { spec } = learnerOf(runOf());
    assert.deepEqual([spec!.replicas, spec!.strategy], [1, { type: "Recreate" }]);
    assert.deepEqual(
      desiredService(runOf()).spec!.ports!.map(({ port }) => port),
      [7443, 9400],
    );
  });

  test("the startup probe waits for learner.startSeconds", () => {
    const { startupProbe } = learnerOf(runOf({ learner: { startSeconds: 95 } })).spec!.template.spec!.containers[0]!;
    assert.equal(startupProbe!.failureThreshold! * startupProbe!.periodSeconds!, 100);
  });

  test("Kueue finds the queue's name on what it admits", () => {
    const run = runOf({ queueName: "research" });
    for (const object of [learnerOf(run), actorOf(run)])
      assert.equal(object.metadata.labels!["kueue.x-k8s.io/queue-name"], "research");
  });

  test("the label on the run names its queue, too; spec.queueName comes first", () => {
    const labels = { "kueue.x-k8s.io/queue-name": "labelled" };
    for (const [spec, queue] of [
      [{}, "labelled"],
      [{ queueName: "research" }, "research"],
    ] as const)
      assert.equal(learnerOf(runOf(spec, {}, { labels })).metadata.labels!["kueue.x-k8s.io/queue-name"], queue);
  });
});

describe("network policies", () => {
  const [learner, actor] = desiredNetworkPolicies(runOf(), { ...DEFAULT_SETTINGS, controllerNamespace: "longrun" });

  test("actors reach the learner's port and DNS, nobody reaches them", () => {
    assert.deepEqual(actor!.spec!.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(actor!.spec!.ingress, [{ ports: [{ port: 9400, protocol: "TCP" }] }]);
    const [toLearner, toDns] = actor!.spec!.egress!;
    assert.deepEqual(toLearner!.ports, [{ port: 7443, protocol: "TCP" }]);
    assert.deepEqual(toLearner!.to![0]!.podSelector!.matchLabels, {
      "app.kubernetes.io/component": "learner",
      "longrun.dev/run": "quick",
    });
    assert.deepEqual(
      toDns!.ports!.map(({ port }) => port),
      [53, 53],
    );
    assert.equal(actor!.spec!.egress!.length, 2);
  });

  test("the learner is reached by its actors and the controller, and dials nobody", () => {
    const [grpc, metrics] = learner!.spec!.ingress!;
    assert.equal(grpc!.from!.length, 2);
    assert.deepEqual(grpc!.from![1]!.namespaceSelector, { matchLabels: { "kubernetes.io/metadata.name": "longrun" } });
    assert.deepEqual(metrics!.ports, [{ port: 9400, protocol: "TCP" }]);
    assert.equal(learner!.spec!.egress, undefined);
  });
});

test("service accounts give no token", () => {
  for (const account of desiredServiceAccounts(runOf())) assert.equal(account.automountServiceAccountToken, false);
});

describe("names", () => {
  const CASES: [name: string, expected: object | undefined][] = [
    ["quick-actor-0-0", { index: 0, generation: 0 }],
    ["quick-actor-12-345", { index: 12, generation: 345 }],
    ["quick-actor-1", undefined],
    ["quick-actor-1-2-3", undefined],
    ["quick-init", undefined],
    ["other-actor-0-0", undefined],
  ];
  for (const [name, expected] of CASES)
    test(`parseActorName ${name}`, () => assert.deepEqual(parseActorName(runOf(), name), expected));

  test("the longest name of a run fits a pod's", () => {
    const run = runOf({}, {}, { name: "x".repeat(40) });
    // A Job's pod adds a dash and five characters; 63 is the most.
    assert.ok(actorName(run, 9999, 999999).length <= 63);
  });

  test("slotOf", () =>
    assert.deepEqual([slotOf("sandbox-3"), slotOf("supervisor"), slotOf("sandbox-x")], [3, undefined, undefined]));

  test("digestOf does not depend on the order of keys", () =>
    assert.equal(digestOf({ a: 1, b: { c: 2, d: 3 } }), digestOf({ b: { d: 3, c: 2 }, a: 1 })));
});
