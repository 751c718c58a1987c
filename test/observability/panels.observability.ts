/**
 * Tests metrics and dashboards with the real Prometheus: it scrapes a real run (a small quickstart with its learner and its actor) and a
 * controller on a real API server with simulated learners. Every query of every panel of the shipped dashboards must return numbers.
 *
 * With LONGRUN_PICTURES=DIR it draws each panel's data there, one SVG per dashboard row.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CHART, DASHBOARDS } from "../../charts/observability/generate.ts";
import { clusterFiles } from "../../controller/debug/cluster.ts";
import { SECRET, type Secret } from "../../controller/operator/kube/resources.ts";
import { CONTROL_PLANE, MONITORING, missingBinaries } from "../cluster/binaries.ts";
import { freePorts } from "../cluster/processes.ts";
import { eventually, World } from "../controller/world.ts";
import { RealRun, temporaryFolder } from "../faults/real-run.ts";
import { type Drawing, draw } from "./draw.ts";
import { type Prometheus, promtool, type Series, startPrometheus } from "./prometheus.ts";

/** The part of a dashboard that determines Grafana's queries. */
interface GrafanaDashboard {
  panels: {
    type: string;
    title: string;
    fieldConfig?: { defaults: { unit: string } };
    targets?: { expr: string; legendFormat?: string; instant?: boolean }[];
  }[];
  templating: { list: { name: string; type: string; query: { query: string } | string; multi?: boolean }[] };
}

const skip = missingBinaries([...CONTROL_PLANE, ...MONITORING]) ?? false;
/** Iterations of the real run: enough for a valid program, and for every gauge to change. */
const ITERATIONS = 6;
const RUN_LABELS = { namespace: "local", run: "quickstart" };
/** Grafana's value of this variable for a scrape interval of two seconds. */
const RATE_INTERVAL = "10s";

describe("observability", { skip }, () => {
  const ends: (() => void | Promise<void>)[] = [];
  const addresses: Record<"learner" | "actor" | "controller" | "standby", string> = {
    learner: "",
    actor: "",
    controller: "",
    standby: "",
  };
  let prometheus: Prometheus;
  let run: RealRun;
  let world: World;
  /** Namespace of the fleet's runs. */
  let namespace: string;
  /** Unix seconds. */
  let startedAt: number;
  let lookedAt: number;

  before(async () => {
    startedAt = Date.now() / 1000;
    const port = await consecutivePorts();
    addresses.learner = `127.0.0.1:${port}`;
    addresses.actor = `127.0.0.1:${port + 1}`;
    const folder = temporaryFolder();
    run = new RealRun(folder.path, { iterations: 1000, metricsListen: addresses.learner });
    ends.push(folder.remove, async () => {
      run.child.kill("SIGINT");
      await run.ended;
    });
    world = await World.start();
    ends.push(() => world.stop());
    const [metrics, standby] = await freePorts(2);
    addresses.controller = `127.0.0.1:${metrics}`;
    addresses.standby = `127.0.0.1:${standby}`;
    await lead(world, metrics!, standby!);
    const rules = readdirSync(`${CHART}alerts`).map((file) => `${CHART}alerts/${file}`);
    prometheus = await startPrometheus(
      [
        { job: "runs", address: addresses.learner, labels: RUN_LABELS },
        { job: "runs", address: addresses.actor, labels: RUN_LABELS },
        { job: "controller", address: addresses.controller, honorLabels: true },
        { job: "controller", address: addresses.standby, honorLabels: true },
      ],
      rules,
    );
    ends.push(() => prometheus.stop());
    namespace = await occupy(world);
    await run.until(
      "a score",
      () => run.lines().length >= ITERATIONS && run.query("SELECT 1 FROM grades WHERE score IS NOT NULL").length > 0,
    );
    await sleep(3000); // until the newest iteration is scraped and rates have two samples
    // Queries use a moment at which every target was scraped: this busy process is one of them.
    lookedAt = await eventually(async () => {
      const at = Date.now() / 1000;
      const [up] = await prometheus.query("sum(up)", at);
      return Number(up?.value?.[1]) === Object.keys(addresses).length && at;
    });
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  for (const part of ["learner", "actor", "controller", "standby"] as const)
    test(`promtool accepts the metrics of ${part}`, async () => {
      const text = await (await fetch(`http://${addresses[part]}/metrics`)).text();
      assert.match(text, /^# TYPE longrun_/m);
      const { status, output } = promtool(["check", "metrics"], text);
      assert.equal(status, 0, output);
    });

  for (const name of Object.keys(DASHBOARDS))
    test(`Every panel of ${name} has data`, async () => {
      const dashboard: GrafanaDashboard = JSON.parse(readFileSync(`${CHART}dashboards/${name}.json`, "utf8"));
      const drawings: Drawing[] = [];
      const empty: string[] = [];
      for (const { type, title, fieldConfig, targets = [] } of dashboard.panels) {
        const answers: Drawing["answers"] = [];
        for (const { expr, legendFormat = "", instant } of targets) {
          const query = replaceVariables(expr, dashboard);
          const series = instant
            ? await prometheus.query(query, lookedAt)
            : await prometheus.queryRange(query, startedAt, lookedAt, 1);
          if (!series.some(hasNumber)) empty.push(`${title}: ${query}`);
          answers.push({ legend: legendFormat, series });
        }
        drawings.push({ type, title, unit: fieldConfig?.defaults.unit ?? "", answers });
      }
      await draw(name, drawings);
      assert.deepEqual(empty, []);
      assert.ok(drawings.length > 10);
    });

  test("Every variable of a dashboard finds values", async () => {
    for (const name of Object.keys(DASHBOARDS)) {
      const dashboard: GrafanaDashboard = JSON.parse(readFileSync(`${CHART}dashboards/${name}.json`, "utf8"));
      for (const variable of dashboard.templating.list) {
        if (typeof variable.query === "string") continue; // the data source
        const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(variable.query.query)!;
        const match = encodeURIComponent(replaceVariables(selector!, dashboard));
        const values = await prometheus.get<string[]>(`/api/v1/label/${label}/values?match[]=${match}`);
        assert.ok(values.length > 0, `${name}: ${variable.name}`);
      }
    }
  });

  test("Prometheus evaluates every alert, and none fires on healthy runs", async () => {
    interface Groups {
      groups: {
        rules: { name: string; health: string; lastError?: string; alerts: { state: string; labels: object }[] }[];
      }[];
    }
    const { groups } = await prometheus.get<Groups>("/api/v1/rules");
    const rules = groups.flatMap((group) => group.rules);
    assert.ok(rules.length >= 14);
    for (const { name, health, lastError, alerts } of rules) {
      assert.equal(health, "ok", `${name}: ${lastError}`);
      if (name === "LongrunDiskNearlyFull") continue; // this machine's disk may be nearly full
      assert.deepEqual(
        alerts.filter(({ state }) => state === "firing"),
        [],
        name,
      );
    }
  });

  test("The logs of learner and actor share the ids of a run and an execution", () => {
    const logOf = (name: string) =>
      readFileSync(join(run.directory, "logs", `${name}.log`), "utf8")
        .split("\n")
        .flatMap((line): Record<string, unknown>[] => (line.startsWith("{") ? [JSON.parse(line)] : []));
    const [learner, actor] = [logOf("learner"), logOf("actor-0")];
    const [{ id }] = run.query("SELECT execution AS id FROM results ORDER BY attempt LIMIT 1") as [{ id: string }];
    assert.ok(
      learner.some(({ execution, msg }) => execution === id && msg === "graded"),
      id,
    );
    assert.ok(
      actor.some(({ execution, msg }) => execution === id && msg === "executed"),
      id,
    );
    const named = [...learner.filter(({ msg }) => msg === "graded"), ...actor];
    assert.deepEqual([...new Set(named.map((line) => line.run))], ["quickstart"]);
  });

  test("longrun debug has the objects of a run in the cluster, and no secret", async () => {
    const files = await clusterFiles(world.config, namespace, "working");
    const text = (path: string) => files.find((file) => file.path === path)?.text ?? "";
    assert.match(text("trainingrun.yaml"), /kind: TrainingRun/);
    assert.match(text("objects/deployments.yaml"), /name: working-learner/);
    assert.match(text("events.yaml"), /ScaledUp/);
    assert.match(text("run-id.txt"), /^team-\d+\/working\n$/);
    assert.ok(files.some(({ path }) => /^logs\/working-learner-[^/]+\/learner\.log$/.test(path)));
    for (const secret of await world.list<Secret>(SECRET, namespace))
      for (const [name, data] of Object.entries(secret.data ?? {}))
        for (const { path, text } of files)
          for (const form of [data, Buffer.from(data, "base64").toString()])
            assert.ok(!text.includes(form), `${path} has ${name} of ${secret.metadata.name}`);
    await assert.rejects(clusterFiles(world.config, namespace, "nobody"), {
      code: "input",
      message: /there is no TrainingRun/,
    });
  });

  test("Labels have few values", async () => {
    const series = await prometheus.query('count by (__name__) ({__name__=~"longrun_.+", job!=""})', lookedAt);
    const many = series.filter(({ value }) => Number(value![1]) > 200);
    assert.deepEqual(
      many.map(({ metric, value }) => `${metric.__name__}: ${value![1]}`),
      [],
    );
  });

  function replaceVariables(expr: string, { templating }: GrafanaDashboard): string {
    let query = expr.replaceAll("$__rate_interval", RATE_INTERVAL);
    for (const { name, multi } of templating.list)
      query = query.replaceAll(`$${name}`, multi ? ".*" : (RUN_LABELS[name as keyof typeof RUN_LABELS] ?? ""));
    assert.doesNotMatch(query, /\$/);
    return query;
  }
});

const hasNumber = ({ values, value }: Series): boolean =>
  (values ?? [value!]).some(([, number]) => Number.isFinite(Number(number)));

/** Starts a controller that leads, and one that waits. */
async function lead(world: World, ...ports: number[]): Promise<void> {
  const namespace = await world.namespace();
  for (const [index, port] of ports.entries()) {
    const started = world.operator({
      config: world.config,
      lease: { namespace, identity: `controller-${index}` },
      metricsAddress: { host: "127.0.0.1", port },
    });
    if (index === 0)
      await started; // the second one would only be ready if it led
    else started.catch(() => {});
  }
}

/** Creates runs of every kind that the fleet's panels distinguish. @returns their namespace */
async function occupy(world: World): Promise<string> {
  const namespace = await world.namespace();
  world.holds = (pod) => pod.metadata.name.startsWith("waiting-actor");
  await world.createRun(namespace, "working", { actors: { min: 1, max: 4, scaleDownSeconds: 1 } });
  await world.createRun(namespace, "waiting", { actors: { min: 2, max: 2 } });
  await world.createRun(namespace, "gpu", { learner: { resources: { limits: { "nvidia.com/gpu": 1 } } } });
  await world.createRun(namespace, "stranded", { initFrom: { run: "nowhere" } });
  await world.createRun(namespace, "suspended", { suspend: true });
  const learner = await eventually(() => world.learners.get(`${namespace}/working`));
  const executions = { queued: 4, running: 2, completed: 0, lost: 0, retried: 0 };
  learner.say({ executions });
  await eventually(async () => (await world.actors(namespace, "working")).length === 4);
  for (let completed = 0; completed < 20; completed++) {
    learner.say({
      executions: { ...executions, completed, lost: completed > 9 ? 1 : 0, retried: completed > 4 ? 1 : 0 },
    });
    await sleep(500);
  }
  learner.work(0, 1);
  return namespace;
}

/** Returns the first of two consecutive free ports. */
async function consecutivePorts(): Promise<number> {
  for (let tries = 0; tries < 20; tries++) {
    const [port] = await freePorts(1);
    const next = createServer().listen(port! + 1, "127.0.0.1");
    const free = await once(next, "listening").catch(() => undefined);
    next.close();
    if (free) return port!;
  }
  throw new Error("no two free ports in a row");
}
