/**
 * `npm run test:chart`: installs, upgrades and removes the chart, in both orders, during a TrainingRun, with a real API server and real
 * controllers of Deployments and Jobs. There is no node: pods are ready as soon as they exist, and the chart's controllers run as processes
 * of this machine, with the rights of their service account.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import type { Run } from "../../controller/operator/desired/names.ts";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  NAMESPACE,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  type Pod,
  SECRET,
  TRAINING_RUN,
  TRAINING_RUNTIME,
} from "../../controller/operator/kube/resources.ts";
import { Reflector } from "../../controller/operator/kube/runtime/reflector.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { FINALIZER } from "../../controller/operator/parts/lifecycle/deletion.ts";
import { findCondition } from "../../controller/operator/status/conditions.ts";
import { firstDifference } from "../../controller/operator/writes/compare.ts";
import { withoutRemovedFields } from "../../crds/removed.ts";
import type { TrainingRuntime } from "../../crds/runtime.ts";
import { CONTROL_PLANE, findBinary, missingBinaries } from "../cluster/binaries.ts";
import { type ControlPlane, controlPlaneUnavailable, kubeconfig, startControlPlane } from "../cluster/control-plane.ts";
import { PodRunner } from "../cluster/pod-runner.ts";
import { eventually as within } from "../controller/world.ts";
import { CHART, helm, IMAGES, RELEASED, ROOT } from "./helm.ts";

const skip = controlPlaneUnavailable([...CONTROL_PLANE, "helm"]) ?? false;
const SYSTEM = "longrun-system";
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const CRD: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};
const CRD_NAME = "trainingruns.longrun.dev";
const RUNTIME_CRD_NAME = "trainingruntimes.longrun.dev";
const CONTROLLERS = [
  ...["deployment-controller", "replicaset-controller", "job-controller", "garbage-collector-controller"],
  ...["namespace-controller", "persistentvolumeclaim-protection-controller"],
];
/** The documentation's HELM_ARGS. */
const INSTALL = ["--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "300s", ...IMAGES];

/** Waits longer than any step takes on an idle machine. */
const eventually = <T>(look: Parameters<typeof within<T>>[0]) => within(look, 180);

let controlPlane: ControlPlane;
let client: ApiClient;
let folder: string;
let pods: PodRunner;
const stopping = new AbortController();
/** Processes by the pod's uid; undefined: not started yet, or not one of longrun's pods. */
const processes = new Map<string, ChildProcess | undefined>();
const gone = new Set<string>();
/** Whether a controller leads. Stands in for the Lease, whose namespace only a pod can know. */
let led = false;
let output = "";

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "longrun-chart-"));
  controlPlane = await startControlPlane({ controllers: CONTROLLERS });
  const config = new KubeConfig();
  config.loadFromFile(controlPlane.kubeconfig);
  client = new ApiClient(config, { qps: 1000, burst: 1000 });
  pods = new PodRunner({ client });
  void pods.run(stopping.signal);
  const system = new Reflector<Pod>({
    ...{ client, resource: POD, namespace: SYSTEM },
    onChange: (_, pod, previous) => {
      const uid = (pod ?? previous)!.metadata.uid!;
      if (!pod || pod.metadata.deletionTimestamp) {
        gone.add(uid);
        processes.get(uid)?.kill("SIGTERM");
      } else if (!processes.has(uid)) {
        processes.set(uid, undefined);
        void runAsProcess(pod).catch((error) => (output += `${error.stack}\n`));
      }
    },
  });
  void system.run(stopping.signal);
});
after(async () => {
  stopping.abort();
  for (const child of processes.values()) child?.kill("SIGKILL");
  client?.close();
  await controlPlane?.stop();
  if (folder) rmSync(folder, { recursive: true });
});

/** Runs the container's command as a process, with the token of the pod's service account. */
async function runAsProcess(pod: Pod): Promise<void> {
  const [container] = pod.spec!.containers;
  const [, script, ...command] = [...container!.command!, ...(container!.args ?? [])];
  if (script !== "/opt/longrun/controller/cli.ts") return;
  const { namespace, uid } = pod.metadata;
  const account = pod.spec!.serviceAccountName!;
  const { status } = await client.request<{ status: { token: string } }>({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} },
  });
  const isController = command[0] === "controller";
  const isOver = () => gone.has(uid!) || stopping.signal.aborted;
  while (isController && led && !isOver()) await sleep(100);
  if (isOver()) return;
  if (isController) led = true;
  const file = join(folder, `kubeconfig-${uid}`);
  writeFileSync(file, kubeconfig(controlPlane.url, controlPlane.caFile, account, status.token));
  const env = Object.fromEntries((container!.env ?? []).map(({ name, value }) => [name, value ?? ""]));
  const args = [];
  for (const text of command) {
    if (text === "--leader-elect") continue;
    if (text.startsWith("--metrics-address")) args.push("--metrics-address=127.0.0.1:0");
    else args.push(text.replace(/\$\((\w+)\)/g, (_, name) => env[name]!));
  }
  const child = spawn(
    process.execPath,
    [join(ROOT, "controller/cli.ts"), args[0]!, "--kubeconfig", file, ...args.slice(1)],
    {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  processes.set(uid!, child);
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const [code] = await once(child, "exit");
  if (isController) led = false;
  else await pods.end(pod, code ?? 1);
}

const run = (...args: string[]) => helm(args, { KUBECONFIG: controlPlane.kubeconfig });
const trainingRun = (namespace: string, name = "run") => client.get<Run>(TRAINING_RUN, { namespace, name });

/** The pods of the chart of 0.1.0 run this controller, which reads ReplicaSets and TrainingRuntimes: the role of 0.1.0 has no such right. */
async function grantMore(): Promise<void> {
  const path = "/apis/rbac.authorization.k8s.io/v1";
  const name = "this-controller";
  const verbs = ["list", "watch"];
  const rules = [
    { apiGroups: ["apps"], resources: ["replicasets"], verbs },
    { apiGroups: ["longrun.dev"], resources: ["trainingruntimes"], verbs },
  ];
  await client.request({ method: "POST", path: `${path}/clusterroles`, body: { metadata: { name }, rules } });
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
  const subjects = [{ kind: "ServiceAccount", namespace: SYSTEM, name: "longrun-controller" }];
  const body = { metadata: { name }, roleRef, subjects };
  await client.request({ method: "POST", path: `${path}/clusterrolebindings`, body });
}

/** Creates a run whose volume stays, so that it has a finalizer while it trains. Its learner never answers. */
async function startRun(namespace: string, { hasStatus = true } = {}): Promise<Run> {
  const made = await client.create(TRAINING_RUN, {
    metadata: { namespace, name: "run" },
    spec: {
      tasks: [{ name: "diamonds" }],
      model: { policy: "quickstart" },
      learner: { checkpoint: { waitSeconds: 1 } },
      actors: { min: 1 },
    },
  } as never as Run);
  await eventually(async () => (await trainingRun(namespace))?.metadata.finalizers?.includes(FINALIZER));
  const isReady = async () => findCondition((await trainingRun(namespace))?.status?.conditions, "Ready");
  if (hasStatus) await eventually(isReady);
  return made;
}

type Generation = KubeObject & { metadata: { generation?: number } };

/**
 * Returns the shipped manifests as the API server stores them now, suspended, so that they have no pod. The CRD of 0.1.0 has no
 * model.source and allows one GPU: the policy then is a folder on a volume, and one GPU replaces eight.
 */
async function writeManifests(): Promise<Run[]> {
  const written = [];
  for (const file of globSync("manifests/{quickstart,tasks/*}/trainingrun.yaml", { cwd: ROOT })) {
    const manifest = parse(readFileSync(join(ROOT, file), "utf8")) as Run;
    const metadata = { ...manifest.metadata, namespace: "training" };
    const spec = { ...manifest.spec, suspend: true };
    const { source, ...model } = spec.model;
    const volume = { persistentVolumeClaim: { claimName: "models" } };
    if (source?.huggingFace)
      spec.model = { ...model, policy: basename(source.huggingFace.repo), volume } as typeof spec.model;
    const { limits } = spec.learner?.resources ?? {};
    if (limits?.["nvidia.com/gpu"] !== undefined) limits["nvidia.com/gpu"] = 1;
    written.push(await client.create(TRAINING_RUN, { ...manifest, metadata, spec }));
  }
  return written;
}

let refusedSinceMs = 0;

/** Uninstalls the chart. Checks that the API server refused no request of its accounts before, and that none of its objects is left. */
async function uninstall(...args: string[]): Promise<void> {
  const accounts = /^system:serviceaccount:longrun-system:/;
  const asked = controlPlane.audit().filter(({ user, atMs }) => accounts.test(user) && atMs >= refusedSinceMs);
  assert.ok(asked.length > 0);
  // Controllers outside of pods reach learners through the API server; a controller in a cluster lacks the right to do so.
  const refused = asked.filter(({ code, subresource }) => code === 403 && subresource !== "portforward");
  assert.deepEqual(refused, []);
  await run("uninstall", "longrun", "--namespace", SYSTEM, "--timeout", "300s", ...args);
  assert.ok(
    await eventually(async () => (await leftOver()).filter((it) => !/ (training|team-.)\//.test(it)).length === 0),
  );
  refusedSinceMs = Date.now();
}

const removeRun = async (namespace: string) => {
  const found = await trainingRun(namespace);
  if (found) await client.delete(TRAINING_RUN, { namespace, name: "run" }, { uid: found.metadata.uid });
};
const isGone = async (namespace: string) => (await trainingRun(namespace)) === undefined;
const newNamespace = (name: string) =>
  client.create(NAMESPACE, { metadata: { name, labels: { "pod-security.kubernetes.io/enforce": "restricted" } } });

/** Returns all objects that the chart could have made or a run has left. */
async function leftOver(): Promise<string[]> {
  const kinds: [string, string][] = [
    ["rbac.authorization.k8s.io", "clusterroles"],
    ["rbac.authorization.k8s.io", "clusterrolebindings"],
    ["rbac.authorization.k8s.io", "roles"],
    ["rbac.authorization.k8s.io", "rolebindings"],
    ["apps", "deployments"],
    ["batch", "jobs"],
    ["policy", "poddisruptionbudgets"],
    ["", "serviceaccounts"],
    ["", "configmaps"],
    ["", "secrets"],
    ["", "pods"],
  ];
  const names = [];
  for (const [group, plural] of kinds) {
    const resource: Resource = { group, version: "v1", plural, kind: plural, namespaced: true };
    const { items } = await client.list<KubeObject>(resource, {
      labelSelector: "app.kubernetes.io/managed-by in (Helm, longrun)",
    });
    names.push(...items.map(({ metadata }) => `${plural} ${metadata.namespace ?? ""}/${metadata.name}`));
  }
  return names;
}

describe("The chart on a real API server", { skip, concurrency: false }, () => {
  test("A run survives an upgrade from 0.1.0 and an uninstall of the chart, and can then be deleted", async () => {
    await newNamespace(SYSTEM);
    await newNamespace("training");
    await grantMore();
    // The learner never answers, so the run is not pinned yet: its images must be the same before and after.
    const tags = ["controller", "learner", "actor", "sandbox"].map((it) => `images.${it}.tag=${VERSION}`);
    await run("install", "longrun", RELEASED, ...INSTALL, "--set", tags.join(","));
    // The pods run this controller, which writes a field of the status that the CRD of 0.1.0 does not have.
    await startRun("training", { hasStatus: false });
    const written = await writeManifests();
    const oldCrd = (await client.get<Generation>(CRD, { name: CRD_NAME }))!;

    const watched: [Resource, string][] = [
      [DEPLOYMENT, "run-learner"],
      [PERSISTENT_VOLUME_CLAIM, "run-data"],
      [SECRET, "run-ca"],
      [CONFIG_MAP, "run-config"],
    ];
    const podsOf = async () => (await client.list<Pod>(POD, { namespace: "training" })).items;
    const state = async () => {
      const found = [];
      for (const [resource, name] of watched) {
        const object = await eventually(() => client.get(resource, { namespace: "training", name }));
        found.push([name, object.metadata.uid, object.metadata.generation ?? (object as { data?: unknown }).data]);
      }
      return [
        ...found,
        (await podsOf()).map(({ metadata }) => metadata.uid).sort(),
        (await trainingRun("training"))!.metadata.generation,
      ];
    };
    await eventually(async () => (await podsOf()).length === 1); // its learner's
    const before = await state();
    const said = output.length;

    await run("upgrade", "longrun", CHART, ...INSTALL, "--set", "controller.logLevel=debug");
    await eventually(() => output.slice(said).includes("the controller runs"));
    await eventually(async () => findCondition((await trainingRun("training"))?.status?.conditions, "Ready"));
    await sleep(5000);
    assert.deepEqual(await state(), before, "the run has not noticed");
    const crd = (await client.get<Generation>(CRD, { name: CRD_NAME }))!;
    assert.equal(crd.metadata.uid, oldCrd.metadata.uid, "the CRD was upgraded in place");
    assert.match(crd.metadata.labels?.["helm.sh/chart"] ?? "", /^longrun-(?!0\.1\.0$)/);
    for (const { metadata, spec } of written) {
      const { namespace, name } = metadata;
      // Any write, such as a changed label, is checked against the whole schema.
      const body = { metadata: { labels: { touched: "yes" } } };
      const now = await client.mergePatch<Run>(TRAINING_RUN, { namespace: namespace!, name }, body);
      const kept = withoutRemovedFields({ spec }).spec;
      assert.equal(firstDifference(kept, now.spec), undefined, `${name} means what it meant`);
      assert.equal(now.metadata.generation, metadata.generation, `${name} was not changed`);
      await client.delete(TRAINING_RUN, { namespace: namespace!, name }, { uid: metadata.uid });
    }

    await uninstall("--wait");
    assert.ok(await client.get(CRD, { name: CRD_NAME }), "the CRD stays");
    const released = (await trainingRun("training"))!;
    assert.deepEqual(released.metadata.finalizers ?? [], []);
    await removeRun("training");
    assert.ok(await eventually(() => isGone("training")));
    assert.ok(
      await client.get(PERSISTENT_VOLUME_CLAIM, { namespace: "training", name: "run-data" }),
      "its volume stays",
    );
    assert.ok(await eventually(async () => (await leftOver()).length === 0), (await leftOver()).join("; "));
  });

  test("Helm takes over the objects of kubectl apply -k and the remaining CRD; runs deleted first allow an uninstall", {
    skip: missingBinaries(["kubectl"]) ?? false,
  }, async () => {
    const kubectl = [findBinary("kubectl")!, "--kubeconfig", controlPlane.kubeconfig] as const;
    execFileSync(kubectl[0], [...kubectl.slice(1), "apply", "--kustomize", join(ROOT, "manifests/install")], {
      stdio: "ignore",
    });
    await startRun("training");
    const before = await client.get(DEPLOYMENT, { namespace: SYSTEM, name: "longrun-controller" });
    await run("install", "longrun", CHART, ...INSTALL, "--take-ownership");
    const taken = await client.get(DEPLOYMENT, { namespace: SYSTEM, name: "longrun-controller" });
    assert.equal(taken!.metadata.uid, before!.metadata.uid);
    assert.equal(taken!.metadata.labels?.["app.kubernetes.io/managed-by"], "Helm");
    await removeRun("training");
    assert.ok(
      await eventually(() => isGone("training")),
      "the controller waits for the checkpoint no longer than it may",
    );
    await uninstall("--wait");
    assert.ok(await eventually(async () => (await leftOver()).length === 0), (await leftOver()).join("; "));
    for (const name of [CRD_NAME, RUNTIME_CRD_NAME]) {
      await client.delete(CRD, { name }, { uid: (await client.get(CRD, { name }))!.metadata.uid! });
      await eventually(async () => (await client.get(CRD, { name })) === undefined);
    }
  });

  test("A release for two namespaces serves no other; crds.keep false deletes the CRD with its runs", async () => {
    await newNamespace("elsewhere");
    const values = join(ROOT, "test/chart/values/namespaces.yaml");
    await run(
      "install",
      "longrun",
      CHART,
      ...INSTALL,
      "--values",
      values,
      "--set",
      "crds.keep=false",
      "--set",
      "runs.learner.podAnnotations.a=b",
    );
    await startRun("team-a");
    await startRun("team-b");
    await client.create(TRAINING_RUN, {
      metadata: { namespace: "elsewhere", name: "run" },
      spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" } },
    } as never as Run);
    await sleep(2000);
    assert.deepEqual((await trainingRun("elsewhere"))!.status, { observedGeneration: -1 }, "not served");
    const learner = await client.get<KubeObject & { spec: { template: KubeObject } }>(DEPLOYMENT, {
      namespace: "team-a",
      name: "run-learner",
    });
    assert.equal(learner?.spec.template.metadata.annotations?.a, "b", "runs.learner of the values");

    // The first installation makes the runtime after its CRD; the next upgrade takes it into the release.
    const runtime = () => client.get<KubeObject & TrainingRuntime>(TRAINING_RUNTIME, { name: "longrun" });
    const noted = async () => (await runtime())?.spec.learner?.podTemplate?.metadata?.annotations?.a;
    const manifest = () => run("get", "manifest", "longrun", "--namespace", SYSTEM);
    assert.equal(await noted(), "b");
    assert.doesNotMatch(await manifest(), /^kind: TrainingRuntime$/m);
    const { uid } = (await runtime())!.metadata;
    await run("upgrade", "longrun", CHART, ...INSTALL, "--reuse-values", "--set", "runs.learner.podAnnotations.a=c");
    assert.equal(await noted(), "c");
    assert.match(await manifest(), /^kind: TrainingRuntime$/m);
    assert.equal((await runtime())!.metadata.uid, uid);
    await eventually(async () => {
      const { spec } = (await client.get<KubeObject & { spec: { template: KubeObject } }>(DEPLOYMENT, {
        namespace: "team-a",
        name: "run-learner",
      }))!;
      return spec.template.metadata.annotations?.a === "c";
    });

    // --wait would wait for the CRD, which waits for the runs, which only a later job releases.
    await uninstall();
    assert.ok(
      await eventually(async () => (await client.get(CRD, { name: CRD_NAME })) === undefined),
      "the CRD is gone",
    );
    const namespace = await client.get(NAMESPACE, { name: "team-a" });
    assert.equal(
      namespace?.metadata.labels?.["pod-security.kubernetes.io/enforce"],
      "restricted",
      "the namespace stays",
    );
    assert.ok(await eventually(async () => (await leftOver()).length === 0), (await leftOver()).join("; "));
  });
});
