/**
 * `npm run test:chart`: an API server validates the chart's objects and `manifests/examples`. It has longrun's CRD and the CRDs of
 * prometheus-operator, KEDA and Kueue (`operator-crds.ts`), and validates strictly: an unknown field is an error.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { KubeConfig } from "@kubernetes/client-node";
import { parse, stringify } from "yaml";
import { desiredServiceAccounts } from "../../controller/operator/desired/access.ts";
import type { Run } from "../../controller/operator/desired/names.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import type { Pod } from "../../controller/operator/kube/resources.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { desiredActor } from "../../controller/operator/parts/actors/desired.ts";
import { desiredGenerators } from "../../controller/operator/parts/generators/desired.ts";
import { desiredLearner } from "../../controller/operator/parts/learner/desired.ts";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { CONTROL_PLANE, findBinary } from "../cluster/binaries.ts";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../cluster/control-plane.ts";
import { eventually } from "../controller/world.ts";
import {
  CHART,
  helm,
  IMAGES,
  isHook,
  OPERATORS,
  objectsOf,
  RELEASED,
  ROOT,
  template,
  VALUE_SETS,
  valuesFile,
} from "./helm.ts";
import { operatorCrds } from "./operator-crds.ts";

const skip = controlPlaneUnavailable([...CONTROL_PLANE, "helm", "kubectl"]) ?? false;
const EXAMPLES = globSync("manifests/examples/*.yaml", { cwd: ROOT }).sort();
/** Kinds that the chart has for other operators. */
const MONITORING_KINDS = ["ServiceMonitor", "PodMonitor", "PrometheusRule"];
const HPA: Resource = {
  ...{ group: "autoscaling", version: "v2", plural: "horizontalpodautoscalers", kind: "HorizontalPodAutoscaler" },
  namespaced: true,
};

type PodSpec = NonNullable<Pod["spec"]>;
/** Returns the object without owner references, because its owner is not created here. */
const withoutOwner = <T extends KubeObject>({ metadata: { ownerReferences: _, ...metadata }, ...rest }: T) => ({
  ...rest,
  metadata,
});

let controlPlane: ControlPlane;
let client: ApiClient;
let folder: string;
before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "longrun-apply-"));
  controlPlane = await startControlPlane({
    crds: [
      ...["trainingruns", "trainingruntimes"].map((plural) => `${ROOT}crds/longrun.dev_${plural}.yaml`),
      ...["monitoring.coreos.com", "keda.sh", "kueue.x-k8s.io"].flatMap(operatorCrds),
    ],
    controllers: ["horizontal-pod-autoscaler-controller"],
  });
  const config = new KubeConfig();
  config.loadFromFile(controlPlane.kubeconfig);
  client = new ApiClient(config);
  for (const name of ["longrun-system", "training", "team-a", "team-b", "guarded"])
    await kubectl("create", "namespace", name);
});
after(async () => {
  client?.close();
  await controlPlane?.stop();
  if (folder) rmSync(folder, { recursive: true });
});

async function kubectl(...args: string[]): Promise<string> {
  try {
    const all = ["--kubeconfig", controlPlane.kubeconfig, ...args];
    return (await promisify(execFile)(findBinary("kubectl")!, all, { maxBuffer: 64 << 20 })).stdout;
  } catch (cause) {
    throw new Error((cause as { stderr?: string }).stderr ?? String(cause), { cause });
  }
}

/** Applies objects as a release does, without hooks. @returns kubectl's line for each object */
async function apply(objects: KubeObject[], ...args: string[]): Promise<string> {
  const file = join(folder, "objects.yaml");
  writeFileSync(
    file,
    objects
      .filter((it) => !isHook(it))
      .map((it) => stringify(it, { version: "1.1" })) // as kubectl reads it: Off is a boolean there
      .join("---\n"),
  );
  return kubectl("apply", "--validate=strict", "--filename", file, ...args);
}

type Values = Record<string, unknown>;
const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the values without those that have no default. Below an empty default, such as `{}`, everything is known. */
function onlyKnown(values: unknown, defaults: unknown): unknown {
  if (!isObject(values) || !isObject(defaults) || Object.keys(defaults).length === 0) return values;
  const known = Object.entries(values).filter(([name]) => name in defaults);
  return Object.fromEntries(known.map(([name, value]) => [name, onlyKnown(value, defaults[name])]));
}

describe("the chart", { skip, concurrency: false }, () => {
  /** Values that 0.1.0 does not know are left out. */
  const released = async (set: string) => {
    const known: unknown = parse(await helm(["show", "values", RELEASED]));
    const values: unknown = parse(readFileSync(valuesFile(set), "utf8")) ?? {};
    const file = join(folder, "values.yaml");
    writeFileSync(file, stringify(onlyKnown(values, known)));
    return objectsOf(await template(["--values", file, ...OPERATORS], RELEASED));
  };

  for (const set of VALUE_SETS)
    test(`The API server accepts values/${set}.yaml, on an empty cluster and over release 0.1.0`, async () => {
      await apply(await released(set));
      const objects = objectsOf(await template(["--values", valuesFile(set), ...OPERATORS]));
      const said = await apply(objects);
      if (set === "watched")
        for (const kind of MONITORING_KINDS) assert.match(said, new RegExp(`^${kind.toLowerCase()}\\.monitoring`, "m"));
    });

  test("The chart refuses a second release in one namespace, and accepts it in another", async () => {
    const install = (release: string, namespace: string) => {
      const cluster = ["--kubeconfig", controlPlane.kubeconfig, "--namespace", namespace];
      return helm(["install", release, CHART, ...cluster, ...IMAGES, "--dry-run=server", "--take-ownership"]);
    };
    await apply(objectsOf(await template()));
    await assert.rejects(
      install("second", "longrun-system"),
      /namespace longrun-system has another longrun, Deployment longrun-controller: install this release into a namespace of its own/,
    );
    await install("second", "guarded");
    await install("longrun", "longrun-system");
  });

  test("The API server refuses a misspelt field of a rendered object", async () => {
    const objects = objectsOf(await template(["--values", valuesFile("watched"), ...OPERATORS]));
    const monitor = structuredClone(objects.find(({ kind }) => kind === "PodMonitor")) as never as {
      spec: { podMetricsEndpoints: Record<string, unknown>[] };
    };
    monitor.spec.podMetricsEndpoints[0]!.ports = "metrics";
    await assert.rejects(apply([monitor as never]), /unknown field "spec\.podMetricsEndpoints\[0\]\.ports"/);
    monitor.spec.podMetricsEndpoints[0] = { port: "metrics", interval: "often" };
    await assert.rejects(apply([monitor as never]), /interval.*should match/);
  });

  test("The released package has the previous version", async () => {
    const { version } = parse(await helm(["show", "chart", RELEASED]));
    assert.equal(version, "0.1.0");
    assert.notEqual(parse(readFileSync(join(CHART, "Chart.yaml"), "utf8")).version, version);
  });
});

describe("manifests/examples", { skip }, () => {
  for (const file of EXAMPLES)
    test(`The API server accepts every object of ${basename(file)}`, async () => {
      const objects = objectsOf(readFileSync(join(ROOT, file), "utf8"));
      await apply(objects, "--namespace", "training");
      for (const object of objects.filter(({ kind }) => kind === "TrainingRun"))
        parseTrainingRun(stringify(object), file, [], { cluster: true });
    });

  /** Returns the pods of the run with that name, as the API server would store them; nothing is stored. */
  const podsOf = async (
    file: string,
    name: string,
  ): Promise<{ learner: PodSpec; actor: PodSpec; generator: PodSpec | undefined }> => {
    const text = readFileSync(join(ROOT, "manifests/examples", file), "utf8");
    await apply(objectsOf(text), "--namespace", "training");
    const manifest = objectsOf(text).find(({ kind, metadata }) => kind === "TrainingRun" && metadata.name === name)!;
    const metadata = { name, namespace: "training", uid: "u", resourceVersion: "1", generation: 1 };
    const run = { ...parseTrainingRun(stringify(manifest), file, [], { cluster: true }), metadata } as Run;
    await apply(desiredServiceAccounts(run).map(withoutOwner));
    const learner = desiredLearner(run, { configHash: "c", claimName: "c", replicas: 1, settings: DEFAULT_SETTINGS });
    const actor = desiredActor(run, 0, 0, DEFAULT_SETTINGS);
    const generators = run.spec.generation && desiredGenerators(run, { replicas: 1, settings: DEFAULT_SETTINGS });
    const admitted = async ({ spec }: typeof learner | typeof actor): Promise<PodSpec> => {
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "pod", namespace: "training" } };
      const said = await apply([{ ...pod, spec: spec!.template.spec } as never], "--dry-run=server", "--output=json");
      return JSON.parse(said).spec;
    };
    const generator = generators && (await admitted(generators));
    return { learner: await admitted(learner), actor: await admitted(actor), generator };
  };

  test("priority.yaml: actors make room for learners, and preempt no other pod", async () => {
    const { learner, actor } = await podsOf("priority.yaml", "prioritised");
    assert.deepEqual([learner.priority, actor.priority, actor.preemptionPolicy], [1000, 0, "Never"]);
  });

  test("sandboxed.yaml: only the actors' pods have the runtime class, with its overhead and its nodes", async () => {
    for (const [name, handler] of [
      ["in-gvisor", "gvisor"],
      ["in-kata", "kata"],
    ] as const) {
      const { learner, actor } = await podsOf("sandboxed.yaml", name);
      assert.deepEqual([learner.runtimeClassName, actor.runtimeClassName], [undefined, handler]);
      if (handler !== "kata") continue;
      assert.deepEqual(actor.overhead, { cpu: "250m", memory: "160Mi" });
      assert.deepEqual(actor.nodeSelector, { "katacontainers.io/kata-runtime": "true" });
    }
  });

  test("placement.yaml: the learner asks for a GPU node; actors ask for other nodes, spread over zones", async () => {
    const { learner, actor } = await podsOf("placement.yaml", "placed");
    assert.deepEqual(learner.nodeSelector, { "nvidia.com/gpu.present": "true" });
    assert.equal(learner.containers[0]!.resources?.limits?.["nvidia.com/gpu"], "1");
    const [term] = actor.affinity!.nodeAffinity!.requiredDuringSchedulingIgnoredDuringExecution!.nodeSelectorTerms;
    assert.deepEqual(term!.matchExpressions, [{ key: "nvidia.com/gpu.present", operator: "DoesNotExist" }]);
    assert.equal(actor.topologySpreadConstraints?.[0]?.topologyKey, "topology.kubernetes.io/zone");
    const tolerated = ({ tolerations = [] }: PodSpec) => tolerations.map(({ key }) => key);
    assert.ok(tolerated(learner).includes("nvidia.com/gpu") && !tolerated(learner).includes("node.example.com/spot"));
    assert.ok(tolerated(actor).includes("node.example.com/spot") && !tolerated(actor).includes("nvidia.com/gpu"));
  });

  test("gpu-pods.yaml: learner and generators have the runtime class, tolerations, /dev/shm and parts of GPUs", async () => {
    const nvidia = {
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name: "nvidia" },
      handler: "nvidia",
    };
    await apply([nvidia as never]);
    const { learner, generator } = await podsOf("gpu-pods.yaml", "gpus");
    for (const [pod, gpus, size] of [
      [learner, { "nvidia.com/gpu": "2" }, "2Gi"],
      [generator!, { "nvidia.com/mig-1g.10gb": "1" }, "1Gi"],
    ] as const) {
      assert.equal(pod.runtimeClassName, "nvidia");
      assert.ok(pod.tolerations?.some(({ key }) => key === "nvidia.com/gpu"));
      const { memory: _, ...limits } = pod.containers[0]!.resources!.limits!;
      assert.deepEqual(limits, gpus);
      assert.ok(pod.containers[0]!.volumeMounts!.some(({ mountPath }) => mountPath === "/dev/shm"));
      const shared = pod.volumes!.find(({ name }) => name === "shared-memory");
      assert.deepEqual(shared!.emptyDir, { medium: "Memory", sizeLimit: size });
    }
  });

  test("The HPA controller reads and sets the number of actors through /scale", async () => {
    await apply(objectsOf(readFileSync(join(ROOT, "manifests/examples/hpa.yaml"), "utf8")), "--namespace", "training");
    // The selector that the controller of TrainingRuns writes; without it the HPA has no pods to count.
    const selector = "app.kubernetes.io/component=actor,longrun.dev/run=scaled-by-hpa";
    const status = JSON.stringify({ status: { actors: { replicas: 1, selector } } });
    const run = ["trainingrun", "scaled-by-hpa", "--namespace", "training"];
    await kubectl("patch", ...run, "--subresource=status", "--type=merge", `--patch=${status}`);
    const conditions = await eventually(async () => {
      const key = { namespace: "training", name: "scaled-by-hpa" };
      const hpa = await client.get<KubeObject & { status?: { conditions?: { type: string; reason: string }[] } }>(
        HPA,
        key,
      );
      const found = hpa?.status?.conditions;
      // It may have read the status before the selector existed.
      const looked = found?.some(({ type, reason }) => type === "ScalingActive" && reason !== "InvalidSelector");
      return looked && found;
    });
    const reasonOf = (of: string) => conditions.find(({ type }) => type === of)?.reason;
    assert.equal(reasonOf("AbleToScale"), "SucceededGetScale");
    // The test has no metrics server, so that only the metric is missing.
    assert.equal(reasonOf("ScalingActive"), "FailedGetExternalMetric");
    await kubectl("scale", ...run, "--replicas=3");
    assert.equal((await kubectl("get", ...run, "--output=jsonpath={.spec.actors.replicas}")).trim(), "3");
  });
});
