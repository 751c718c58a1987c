/**
 * Renders the chart for each file of `values/`, and compares its objects and its notes with the snapshots in `snapshots/`.
 *
 *     node --test --test-update-snapshots test/chart/render.test.ts      writes the snapshots anew
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { stringify } from "yaml";
import { dnsRule, parseDnsServers } from "../../controller/operator/desired/dns.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { parseRuntime } from "../../crds/runtime.ts";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import {
  CHART,
  helmUnavailable,
  isHook,
  OPERATORS,
  objectsOf,
  ROOT,
  template,
  VALUE_SETS,
  valuesFile,
} from "./helm.ts";

const skip = helmUnavailable() ?? false;

type Loose = KubeObject & { data?: Record<string, string>; spec?: never };
/** A workaround: `helm template` does not show NOTES.txt, and `helm install` takes no list of a cluster's API versions. */
const NOTES = 'notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | toJson }}\n';
const rendered = new Map<string, { text: string; objects: Loose[]; notes: string }>();
const folder = mkdtempSync(join(tmpdir(), "longrun-chart-"));
after(() => rmSync(folder, { recursive: true }));
const withNotes = join(folder, "with-notes");
before(async () => {
  if (skip) return;
  cpSync(CHART, withNotes, { recursive: true });
  writeFileSync(join(withNotes, "templates/notes.yaml"), NOTES);
  for (const set of VALUE_SETS) rendered.set(set, await renderWithNotes(["--values", valuesFile(set)]));
});

async function renderWithNotes(args: string[]) {
  const text = await template([...args, ...OPERATORS], withNotes);
  const documents = objectsOf(text) as (Loose & { notes?: string })[];
  const { notes } = documents.find((it) => it.notes !== undefined)!;
  return { text, objects: documents.filter((it) => it.notes === undefined), notes: notes! };
}

const notesOf = async (args: string[]) => (await renderWithNotes(args)).notes;

const objects = (set: string) => rendered.get(set)!.objects;
const find = (set: string, kind: string, name: string | RegExp) =>
  objects(set).find((object) => object.kind === kind && object.metadata.name.match(name));

/** Most lines of an object in a snapshot: dashboards and alerts are files that the chart includes unchanged. */
const SNAPSHOT_LINES = 200;
function beginning(text: string): string {
  const lines = text.split("\n");
  if (lines.length <= SNAPSHOT_LINES) return text;
  return [...lines.slice(0, SNAPSHOT_LINES / 10), `# and ${lines.length - SNAPSHOT_LINES / 10} lines more`, ""].join(
    "\n",
  );
}

const PART_OF = "app.kubernetes.io/part-of";
interface PodSpec {
  containers: { name: string; resources?: Record<string, object> }[];
  affinity?: object;
}
/** Returns the spec of a Pod, or of the pods that an object makes. */
const podOf = (kind: string, spec: unknown): PodSpec | undefined =>
  kind === "Pod" ? (spec as PodSpec) : (spec as { template?: { spec?: PodSpec } } | undefined)?.template?.spec;

describe("The rendered chart", { skip }, () => {
  for (const set of VALUE_SETS) {
    test(`${set}: the objects equal their snapshot`, (t) => {
      const documents = rendered
        .get(set)!
        .text.split(/^---\n/m)
        .filter((text) => /^kind: (?!CustomResourceDefinition$)/m.test(text))
        .map(beginning);
      t.assert.fileSnapshot(documents.join("---\n"), join(import.meta.dirname, "snapshots", `${set}.yaml`), {
        serializers: [(text: string) => text],
      });
    });

    test(`${set}: the notes equal their snapshot`, (t) =>
      t.assert.fileSnapshot(rendered.get(set)!.notes, join(import.meta.dirname, "snapshots", `${set}.notes.txt`), {
        serializers: [(text: string) => text],
      }));

    test(`${set}: every object has the label part-of longrun, and no selector uses it`, () => {
      for (const { kind, metadata } of objects(set))
        assert.equal(metadata.labels?.[PART_OF], "longrun", `${kind} ${metadata.name}`);
      const selectors = objects(set).map(({ spec }) =>
        JSON.stringify((spec as unknown as { selector?: object })?.selector ?? {}),
      );
      assert.ok(!selectors.some((selector) => selector.includes(PART_OF)));
    });

    test(`${set}: longrun accepts the default runtime, and the TrainingRun of helm test`, () => {
      const runtime = find(set, "TrainingRuntime", /./);
      if (runtime) parseRuntime(stringify(runtime), "runtime.yaml");
      const pod = podOf("Deployment", find(set, "Deployment", /-controller$/)!.spec)!;
      const { args } = pod.containers[0]! as { args?: string[] };
      const named = args!.filter((text) => text.startsWith("--default-runtime"));
      assert.deepEqual(named, runtime ? [`--default-runtime=${runtime.metadata.name}`] : []);
      const manifest = find(set, "ConfigMap", /-smoke-test$/)!.data!["trainingrun.yaml"]!;
      parseTrainingRun(manifest, "trainingrun.yaml", [], { cluster: true });
    });
  }

  test("Every container of the chart has the requests and limits that a quota of CPU and memory demands", () => {
    for (const { kind, metadata, spec } of VALUE_SETS.flatMap(objects)) {
      const { containers = [] } = podOf(kind!, spec) ?? {};
      for (const { name, resources } of containers) {
        const counted = {
          requests: ["cpu", "memory"],
          limits: isHook({ metadata } as KubeObject) ? ["cpu", "memory"] : ["memory"],
        };
        for (const [what, names] of Object.entries(counted))
          assert.deepEqual(Object.keys(resources?.[what] ?? {}), names, `${kind} ${metadata.name}: ${name}: ${what}`);
      }
    }
  });

  test("Nobody's role of the chart may write TrainingRuntimes, and the controller's reads them in the whole cluster", () => {
    type Rule = { resources: string[]; verbs: string[] };
    const roles = VALUE_SETS.flatMap(objects).filter(({ kind }) => kind === "Role" || kind === "ClusterRole");
    const granted = roles.flatMap(({ kind, metadata, rules }: KubeObject & { rules?: Rule[] }) =>
      rules!
        .filter(({ resources }) => resources.includes("trainingruntimes") || resources.includes("*"))
        .map(({ verbs }) => `${kind} ${metadata.name.replace(/^lr-|^longrun-/, "")}: ${verbs.join()}`),
    );
    assert.deepEqual([...new Set(granted)].sort(), [
      "ClusterRole controller-runtimes: get,list,watch",
      "ClusterRole trainingruntimes-view: get,list,watch",
    ]);
  });

  test("guarded: the pods of helm test and helm uninstall run on the controller's nodes, beside its pods if necessary", () => {
    const affinities = objects("guarded").flatMap(({ kind, spec, metadata }) => {
      const affinity = podOf(kind!, spec)?.affinity;
      return affinity ? [[metadata.name, Object.keys(affinity)]] : [];
    });
    assert.deepEqual(affinities, [
      ["lr-controller", ["nodeAffinity", "podAntiAffinity"]],
      ["lr-smoke-test", ["nodeAffinity"]],
      ["lr-release-runs", ["nodeAffinity"]],
    ]);
  });

  test("guarded: the controller's pod may ask the DNS servers that the controller grants to runs; others are passed to it", async () => {
    const policy = find("guarded", "NetworkPolicy", /-controller$/)!.spec as unknown as { egress: object[] };
    assert.deepEqual(policy.egress[0], dnsRule());
    const own = ["--set-json", 'networkPolicy.dns.to=[{"ipBlock":{"cidr":"10.0.0.10/32"}}]'];
    const { text } = await renderWithNotes(own);
    const [, option] = /"--dns=(.*)"$/m.exec(text)!;
    const expected = { to: [{ ipBlock: { cidr: "10.0.0.10/32" } }], ports: [53, 5353] };
    assert.deepEqual(parseDnsServers(JSON.parse(`"${option}"`), "--dns"), expected);
  });

  test("images.tag is the tag of every image that sets none of its own", async () => {
    const digest = `sha256:${"1".repeat(64)}`;
    const own = ["images.sandbox.tag=1.2.4", `images.actor.digest=${digest}`].flatMap((it) => ["--set", it]);
    const { text } = await renderWithNotes(["--set", "images.registry=r.example.com,images.tag=1.2.3", ...own]);
    const images = new Set([...text.matchAll(/(?:image|value): (r\.example\.com\/\S+)/g)].map(([, image]) => image));
    assert.deepEqual([...images].sort(), [
      `r.example.com/longrun/actor@${digest}`,
      "r.example.com/longrun/controller:1.2.3",
      "r.example.com/longrun/learner:1.2.3",
      "r.example.com/longrun/sandbox:1.2.4",
    ]);
  });

  test("An image of another registry keeps its registry, and without a tag gets the chart's version", async () => {
    const own = ["controller", "learner", "actor", "sandbox"].map(
      (it) => `images.${it}.repository=localhost:5000/${it}`,
    );
    const text = await template(["--set", `images.registry=,${own.join(",")}`]);
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    assert.match(text, new RegExp(`image: localhost:5000/controller:${version}\n`));
  });

  test("gpu: the notes warn where the learner's image cannot use a GPU", async () => {
    const warning = /images\.learner\.repository is longrun\/learner, which computes on the CPU alone/;
    const cpu = ["--set", "images.learner.repository=longrun/learner"];
    assert.match(await notesOf(["--values", valuesFile("gpu"), ...cpu]), warning);
    assert.doesNotMatch(rendered.get("gpu")!.notes, warning);
    assert.doesNotMatch(rendered.get("default")!.notes, warning);
  });

  test("The notes name the alert that always fires where nothing scrapes the controller", async () => {
    const warning = /LongrunNoLeader fires for ever, unless\nyou configure Prometheus to scrape/;
    assert.match(await notesOf(["--set", "metrics.prometheusRule.enabled=true"]), warning);
    assert.doesNotMatch(rendered.get("watched")!.notes, warning);
    assert.doesNotMatch(rendered.get("default")!.notes, warning);
  });

  test("gpu: Helm makes the default runtime after its CRD, and with the others where the CRD is there", async () => {
    const hookOf = (of: KubeObject | undefined) => of!.metadata.annotations!["helm.sh/hook"];
    assert.equal(hookOf(find("gpu", "TrainingRuntime", /./)), "post-install,post-upgrade,post-rollback");
    const known = ["--api-versions", "longrun.dev/v1alpha1/TrainingRuntime", ...OPERATORS];
    const objects = objectsOf(await template(["--values", valuesFile("gpu"), ...known]));
    const runtime = objects.find(({ kind }) => kind === "TrainingRuntime");
    assert.deepEqual(runtime!.metadata.annotations, {
      "meta.helm.sh/release-name": "longrun",
      "meta.helm.sh/release-namespace": "longrun-system",
    });
  });

  test("The notes name values for runs that have no effect without the default runtime", async () => {
    const text =
      /defaultRuntime\.create is false: runs get nothing of the values for the default runtime \(spec\.caBundle, spec\.learner\)/;
    const without = ["--set", "defaultRuntime.create=false"];
    assert.match(await notesOf(["--set", "gpu.enabled=true,caBundle.configMap=ours", ...without]), text);
    assert.doesNotMatch(await notesOf(without), /defaultRuntime/);
    assert.doesNotMatch(rendered.get("gpu")!.notes, /defaultRuntime/);
  });

  test("Without values for it there is no default runtime; another one can be named, and limits be set", async () => {
    const of = async (...sets: string[]) => {
      const text = await template(sets.flatMap((set) => ["--set", set]));
      const runtime = objectsOf(text).find(({ kind }) => kind === "TrainingRuntime") as
        | (KubeObject & { spec: object })
        | undefined;
      return [/--default-runtime=(\S+)/.exec(text)?.[1], runtime?.metadata.name, runtime?.spec];
    };
    assert.deepEqual(await of(), [undefined, undefined, undefined]);
    assert.deepEqual(await of("defaultRuntime.create=false", "defaultRuntime.name=ours", "gpu.enabled=true"), [
      "ours",
      undefined,
      undefined,
    ]);
    const limited = await of(
      "defaultRuntime.spec.limits.gpus=8",
      "runs.storageClassName=fast",
      "defaultRuntime.name=a",
    );
    assert.deepEqual(limited, ["a", "a", { learner: { storage: { className: "fast" } }, limits: { gpus: 8 } }]);
  });

  test("gpu: the default runtime has the intended spec", () => {
    assert.deepEqual(find("gpu", "TrainingRuntime", /./)!.spec, {
      queueName: "training",
      learner: {
        resources: { requests: { cpu: 4, memory: "32Gi" }, limits: { memory: "32Gi", "nvidia.com/gpu": 1 } },
        storage: { className: "fast" },
        podTemplate: {
          spec: {
            imagePullSecrets: [{ name: "registry" }],
            nodeSelector: { "nvidia.com/gpu.present": "true" },
            priorityClassName: "longrun-learner",
            runtimeClassName: "nvidia",
            tolerations: [
              { key: "dedicated", operator: "Equal", value: "training", effect: "NoSchedule" },
              { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" },
            ],
          },
        },
      },
      actors: {
        sandboxResources: { requests: { cpu: "500m" } },
        runtimeClassName: "gvisor",
        podTemplate: {
          metadata: { annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" } },
          spec: {
            imagePullSecrets: [{ name: "registry" }],
            nodeSelector: { "node.example.com/pool": "spot" },
            priorityClassName: "longrun-actor",
            tolerations: [{ key: "node.example.com/spot", operator: "Exists", effect: "NoSchedule" }],
          },
        },
      },
    });
  });
});

describe("The chart refuses impossible values in one line", { skip }, () => {
  const REFUSED: [what: string, args: string[], message: RegExp][] = [
    ["an unknown value", ["--set", "replicas=3"], /additional propert.*replicas/i],
    [
      "no prometheus-operator",
      ["--set", "metrics.podMonitor.enabled=true"],
      /metrics\.podMonitor\.enabled is true, but the cluster does not serve monitoring\.coreos\.com\/v1: install prometheus-operator first/,
    ],
    [
      "no Kueue",
      ["--set", "kueue.enabled=true"],
      /kueue\.enabled is true, but the cluster does not serve kueue\.x-k8s\.io\/v1beta2: install Kueue/,
    ],
    [
      "an account that nobody names",
      ["--set", "serviceAccount.create=false"],
      /name an account that is there in serviceAccount\.name/,
    ],
    [
      "namespaces where all are served",
      ["--set", "watch.namespaces={team}"],
      /mean nothing while watch\.scope is cluster/,
    ],
    [
      "a test where the controller does not look",
      ["--values", valuesFile("namespaces"), "--set", "test.namespace=team-c"],
      /test\.namespace is team-c, which the controller does not serve \(namespaces team-a, team-b\): name one of these/,
    ],
    [
      "images that anybody could publish",
      ["--set", "images.registry="],
      /longrun publishes no images: build them, push them to a registry of yours .* and set images\.registry, for example/,
    ],
    [
      "one image that anybody could publish",
      [
        "--set",
        "images.registry=,images.controller.repository=r.example.com/c,images.actor.repository=r.example.com/a",
      ],
      /or give images\.learner\.repository with its registry/,
    ],
    ["an old Kubernetes", ["--kube-version", "1.28.0"], /requires kubeVersion: >=1\.30\.0-0/],
  ];
  for (const [what, args, message] of REFUSED) test(what, () => assert.rejects(template(args), message));
});

describe("alerts and dashboards are files of the chart", { skip }, () => {
  test("Each file of alerts/ adds its groups and gets a runbook's URL; each file of dashboards/ is a ConfigMap", async () => {
    const chart = join(folder, "with-files");
    cpSync(CHART, chart, { recursive: true });
    const rule = { alert: "LongrunTest", expr: "up == 0", annotations: { summary: "{{ $labels.run }} is down" } };
    writeFileSync(join(chart, "alerts/test.yaml"), JSON.stringify({ groups: [{ name: "test", rules: [rule] }] }));
    writeFileSync(join(chart, "dashboards/test.json"), '{"title": "{{ test }}"}');
    const found = objectsOf(await template(["--values", valuesFile("watched"), ...OPERATORS], chart)) as Loose[];
    const { spec } = found.find(({ kind }) => kind === "PrometheusRule") as never as {
      spec: { groups: { name: string }[] };
    };
    const annotations = { ...rule.annotations, runbook_url: "https://git.example.com/longrun/runbooks/LongrunTest.md" };
    assert.deepEqual(
      spec.groups.find(({ name }) => name === "test"),
      { name: "test", rules: [{ ...rule, annotations }] },
    );
    const dashboard = found.find(({ metadata }) => metadata.name === "longrun-dashboard-test")!;
    assert.deepEqual(dashboard.data, { "test.json": '{"title": "{{ test }}"}' });
    assert.equal(dashboard.metadata.labels?.grafana_dashboard, "1");
  });
});
