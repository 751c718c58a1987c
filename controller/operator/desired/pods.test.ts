import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runOf } from "../run.fixture.ts";
import { actorOf, CUSTOM, learnerOf, podsOf, SEVERAL } from "./desired.fixture.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

describe("An evicted actor", () => {
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

  test("Its Job makes no second pod, which would be another actor with the same name", () =>
    assert.deepEqual(
      actorOf(runOf()).spec!.podFailurePolicy!.rules.map(({ action }) => action),
      ["FailJob", "FailJob"],
    ));
});

describe("pods", () => {
  for (const [name, run] of Object.entries({ bundled: runOf(), custom: runOf(CUSTOM) }))
    for (const [part, pod] of Object.entries(podsOf(run)))
      test(`The ${part} of a ${name} task fits the restricted level and has no token`, () => {
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

  test("Only the learner mounts answers", () => {
    const { learner, actor } = podsOf(runOf(CUSTOM));
    const answers = learner.containers[0]!.volumeMounts!.find(({ name }) => name === "private-data");
    assert.deepEqual(
      { path: answers?.mountPath, subPath: answers?.subPath, readOnly: answers?.readOnly },
      { path: "/tasks/own/prepared/private", subPath: "private", readOnly: true },
    );
    assert.doesNotMatch(JSON.stringify(actor), /private/);
  });

  test("Only the learner is in the group that reads the bundled tasks' answers", () => {
    const { learner, actor } = podsOf(runOf());
    assert.deepEqual(learner.securityContext?.supplementalGroups, [10003]);
    assert.equal(actor.securityContext?.supplementalGroups, undefined);
  });

  test("A sandbox has no secret, and shares no volume but the public data", () => {
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

  test("The learner alone mounts the data of a warm start, from a ConfigMap, a claim or an image", () => {
    for (const [data, volume, subPath] of [
      [{ configMap: { name: "corpus" } }, { configMap: { name: "corpus" } }, undefined],
      [
        { persistentVolumeClaim: { claimName: "data", subPath: "warm" } },
        { persistentVolumeClaim: { claimName: "data", readOnly: true } },
        "warm",
      ],
      [{ image: { reference: "corpus:1" } }, { image: { reference: "corpus:1" } }, undefined],
    ] as const) {
      const { learner, actor } = podsOf(runOf({ warmStart: { data } }));
      const own = learner.volumes!.find(({ name }) => name === "warm-start");
      assert.deepEqual(own, { name: "warm-start", ...volume });
      const mount = learner.containers[0]!.volumeMounts!.find(({ name }) => name === "warm-start");
      assert.deepEqual([mount?.mountPath, mount?.readOnly, mount?.subPath], ["/warm-start", true, subPath]);
      assert.doesNotMatch(JSON.stringify(actor), /warm-start/);
    }
  });

  test("Each of several tasks has its own folder and data; no actor has an answer", () => {
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

  test("The pod has the run's runtime class, and none if the run names none", () => {
    assert.equal(podsOf(runOf()).actor.runtimeClassName, undefined);
    for (const runtimeClassName of ["gvisor", "kata"])
      assert.equal(podsOf(runOf({ actors: { runtimeClassName } })).actor.runtimeClassName, runtimeClassName);
  });

  const ARGUMENTS: [what: string, spec: object, part: "learner" | "actor", expected: RegExp][] = [
    ["a bundled task", {}, "learner", /--task-dir \/opt\/longrun-tasks\/diamonds/],
    ["a custom task", CUSTOM, "learner", /--task-dir \/tasks\/own/],
    ["the manifest", {}, "learner", /--run \/data\/run --manifest \/config\/trainingrun\.yaml --tls \/tls --stay/],
    ["ports", {}, "learner", /--listen :7443 --metrics-listen :9400/],
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
    test(`The arguments have ${what}`, () =>
      assert.match(podsOf(runOf(spec))[part].containers[0]!.args!.join(" "), expected));

  const MIB = 2 ** 20;
  test("A sandbox that imports torch gets more memory", () => {
    const [sandbox] = actorOf(runOf({ actors: { packages: "Paper" } })).spec!.template.spec!.initContainers!;
    assert.deepEqual(sandbox!.resources!.limits, { memory: String(5120 * MIB) });
  });

  test("A learner without resources gets default requests, and one with resources gets only its own", () => {
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
    test(`A sandbox with ${JSON.stringify(sandboxResources)} has memory for an execution and its files`, () => {
      const { resources } = actorOf(runOf({ actors: { sandboxResources } })).spec!.template.spec!.initContainers![0]!;
      assert.deepEqual(resources, { requests, limits });
    });

  test("The run's images and pull policies take precedence over the controller's", () => {
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
