/** Tests the CRD on a real API server: refusals, defaults, printer columns and scaling. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { parse } from "yaml";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../test/cluster/control-plane.ts";
import { type Answer, ApiServer, causesOf } from "./api-server.fixture.ts";
import { fillItems } from "./item-defaults.ts";
import { applyOverride, parseOverride } from "./overrides.ts";
import type { RuleCase } from "./rule-case.ts";
import { BASE, RULE_CASES } from "./rule-cases.ts";
import { rulesOf } from "./rules.ts";
import { CRD_FILE, readSchema, type Schema } from "./schema.ts";
import { ManifestError, parseTrainingRun, type TrainingRun, type TrainingRunStatus } from "./trainingrun.ts";

const RULES = rulesOf(readSchema());
const RUNS = "/apis/longrun.dev/v1alpha1/namespaces/default/trainingruns";
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

const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.call(method, path, body);

/** The query of `kubectl apply --dry-run=server`: unknown fields are refused. */
const DRY = "dryRun=All&fieldValidation=Strict";
const create = (run: unknown, query = DRY): Promise<Answer> => call("POST", `${RUNS}?${query}`, run);
const manifest = (overrides: string[]): TrainingRun => {
  const run = parse(BASE);
  for (const override of overrides) applyOverride(run, parseOverride(override));
  return run;
};
/** Creates the TrainingRun that a case needs. */
async function existing(name: string, { before, phase }: Pick<RuleCase, "before" | "phase">): Promise<TrainingRun> {
  const created = await create(manifest([...before!, `metadata.name=${name}`]), "fieldValidation=Strict");
  assert.equal(created.code, 201, created.body.message);
  if (!phase) return created.body;
  const { code, body } = await call("PUT", `${RUNS}/${name}/status`, { ...created.body, status: { phase } });
  assert.equal(code, 200, body.message);
  return body;
}

/** Returns the cause of a rule's refusal, as the API server writes it. */
function expectedCause({ at, message }: RuleCase): string {
  const rule = RULES.find((r) => r.at === at && r.message.startsWith(message))!;
  const place = [at.replaceAll("[]", "[0]"), rule.field].filter(Boolean).join(".");
  return `${place || "<nil>"}: ${rule.message}`;
}

describe("Each rule refuses its bad cases and accepts the neighbouring good ones", { skip, concurrency: 4 }, () => {
  for (const [index, ruleCase] of RULE_CASES.entries()) {
    const { at, message, refused, accepted } = ruleCase;
    test(`${at || "manifest"}: ${message}: ${refused.join(" ") || "removed"}`, async () => {
      const name = `case-${index}`;
      const old = ruleCase.before && (await existing(name, ruleCase));
      const send = (overrides: string[]): Promise<Answer> => {
        const run = manifest(overrides);
        if (!old) return create(run);
        run.metadata = { ...run.metadata, name, resourceVersion: old.metadata.resourceVersion };
        return call("PUT", `${RUNS}/${name}?${DRY}`, run);
      };
      const no = await send(refused);
      assert.equal(no.code, 422, no.body.message);
      const withoutValues = causesOf(no).map((cause) => cause.replace(/ [(]it is ".*"[)]$/, ""));
      assert.deepEqual(withoutValues, [expectedCause(ruleCase)]);
      const yes = await send(accepted);
      assert.ok(yes.code === 200 || yes.code === 201, yes.body.message);
    });
  }
});

describe("the API server and the reader of manifests agree", { skip }, () => {
  /** Returns `field: message` of each problem that the reader finds. */
  const problemsOf = (overrides: string[]): string[] => {
    try {
      parseTrainingRun(BASE, "f", overrides, { cluster: true });
      return [];
    } catch (error) {
      assert.ok(error instanceof ManifestError);
      return error.problems;
    }
  };

  test("Absent fields have their defaults", async () => {
    for (const overrides of [
      [],
      ["stopping.iterations=3", "actors.max=2"],
      ["tasks[0].executionTimeoutSeconds=9", "learner.checkpoint={}", "initFrom.run=a"],
      ["model.volume.persistentVolumeClaim.claimName=a", "model.policy=a/b"],
    ]) {
      const { code, body } = await create(manifest(overrides));
      assert.equal(code, 201, body.message);
      assert.deepEqual(fillItems(body).spec, parseTrainingRun(BASE, "f", overrides).spec);
    }
  });

  test("An unchanged manifest stays what is stored in its lists, and a finished run of an earlier CRD takes it", async () => {
    const on = (claimName: string) => ({ persistentVolumeClaim: { claimName } });
    const grader = { metric: "MAE", idColumn: "id", targetColumns: ["price"], direction: "Lower" };
    const tasks = [{ name: "diamonds", publicData: on("open"), privateData: on("answers"), grader }];
    const run = manifest([`tasks=${JSON.stringify(tasks)}`, "metadata.name=unchanged"]);
    const { code, body } = await create(run, "fieldValidation=Strict");
    assert.equal(code, 201, body.message);
    assert.deepEqual([body.spec.tasks, body.status], [tasks, { observedGeneration: -1 }]);
    // As an earlier CRD stored it, and then `kubectl apply`.
    const { spec } = fillItems(body);
    const stored = await call("PUT", `${RUNS}/unchanged`, { ...body, spec });
    assert.deepEqual([stored.code, stored.body.spec.tasks], [200, spec.tasks]);
    const status = { ...stored.body, status: { phase: "Succeeded" } };
    assert.equal((await call("PUT", `${RUNS}/unchanged/status`, status)).code, 200);
    const applied = await call("PATCH", `${RUNS}/unchanged`, { spec: { tasks } });
    assert.deepEqual([applied.code, applied.body.spec?.tasks], [200, tasks], applied.body.message);
  });

  test("a manifest that breaks several rules gets the message of each", async () => {
    const changes = RULE_CASES.filter((ruleCase) => !ruleCase.before && ruleCase.at !== "").flatMap(
      ({ refused, accepted }) => [refused, accepted],
    );
    await fc.assert(
      fc.asyncProperty(fc.subarray(changes, { minLength: 2, maxLength: 4 }), async (chosen) => {
        const answer = await create(manifest(chosen.flat()));
        const problems = problemsOf(chosen.flat());
        assert.equal(answer.code, problems.length > 0 ? 422 : 201, answer.body.message);
        const message = (text: string): string => RULES.find((rule) => text.includes(rule.message))?.message ?? text;
        if (problems.some((problem) => problem.includes("does not fit")))
          assert.deepEqual(causesOf(answer).map(message).sort(), problems.map(message).sort());
      }),
      { numRuns: 60, seed: 4 },
    );
  });

  test("The rule about the form of a text shows the text in the same sentence", async () => {
    for (const change of ["queueName=Team_1", "learner.storage.size=5 apples", "prompts.packages=[numpy==2]"]) {
      const [cause] = causesOf(await create(manifest([change])));
      const [, field, sentence] = /^(\S+): (.*)$/.exec(cause!)!;
      assert.match(sentence!, /[(]it is "(Team_1|5 apples|numpy==2)"[)]$/);
      assert.deepEqual(problemsOf([change]), [`--set ${change}: ${field} does not fit: ${sentence}`]);
    }
  });

  test("A text with a line break, as a YAML block ends, is refused with a sentence too", async () => {
    const run = manifest([]);
    const [cause] = causesOf(await create({ ...run, spec: { ...run.spec, queueName: "team\n" } }));
    assert.match(cause!, /^spec\.queueName: the name of a LocalQueue has .* [(]it is "team "[)]$/);
  });

  const fields: { path: string; schema: Schema }[] = [];
  const collect = (schema: Schema, path: string): void => {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = `${path}.${name}`;
      fields.push({ path: at, schema: property });
      collect(property, at);
      if (property.items) collect(property.items, `${at}[0]`);
    }
  };
  collect(readSchema().properties!.spec!, "spec");

  const bounds: [name: string, wrong: (schema: Schema) => unknown][] = [
    ["too small", ({ minimum }) => (minimum === undefined ? undefined : minimum > 0 && minimum < 1 ? 0 : minimum - 1)],
    ["too large", ({ maximum }) => (maximum === undefined ? undefined : maximum + 1)],
    ["unknown choices and forms", ({ enum: choices, pattern }) => (choices || pattern ? "<>" : undefined)],
    [
      "too long",
      ({ maxLength, enum: choices }) =>
        maxLength === undefined || choices ? undefined : "a".repeat(Number(maxLength) + 1),
    ],
    [
      "too many items",
      ({ maxItems, items }) =>
        maxItems && items!.type === "string"
          ? Array.from({ length: Number(maxItems) + 1 }, (_, i) => `i${i}`)
          : undefined,
    ],
  ];
  for (const [name, wrong] of bounds)
    test(`every field refuses values that are ${name}`, async () => {
      const run = manifest([]);
      const places: string[] = [];
      for (const { path, schema } of fields) {
        const value = wrong(schema);
        if (value === undefined) continue;
        places.push(path);
        applyOverride(run, { ...parseOverride(`${path}=0`), value });
      }
      const answer = await create(run, "dryRun=All");
      assert.equal(answer.code, 422);
      // A list item without its key is refused before its fields are checked.
      const refused = new Set(causesOf(answer).map((cause) => cause.split(": ")[0]!.replace(/\[\d+\]$/, "")));
      const here = new Set(
        problemsOf([`spec=${JSON.stringify(run.spec)}`]).map((problem) => /: (spec\S*) is /.exec(problem)?.[1]),
      );
      assert.deepEqual(
        { server: places.filter((path) => !refused.has(path)), here: places.filter((path) => !here.has(path)) },
        { server: [], here: [] },
      );
      assert.ok(places.length > 0);
    });

  for (const path of ["tasks", "tasks[0].grader.targetColumns"])
    test(`${path} cannot be empty`, async () => {
      const answer = await create(manifest([`${path}=[]`]));
      assert.ok(
        causesOf(answer).some((cause) => cause.startsWith(`spec.${path}: `)),
        answer.body.message,
      );
    });

  test("Both accept any value of a field, or both refuse it", async () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.integer({ min: -2, max: 200 }),
      fc.constantFrom(0.5, 1e-7, "1Gi", "500m", "a", "a.b", "A", "", "Full", {}, [], [{ name: "a" }], { cpu: 1 }, true),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...fields), value, async ({ path }, wild) => {
        // null stands for an absent field on a server, which then fills it in.
        const text = JSON.stringify(wild);
        fc.pre(!text.includes("null"));
        const run = manifest([]);
        applyOverride(run, { ...parseOverride(`${path}=0`), value: wild });
        const { code, body } = await create(run);
        const problems = problemsOf([`spec=${JSON.stringify(run.spec)}`]);
        assert.ok([201, 400, 422].includes(code), body.message);
        assert.equal(code === 201, problems.length === 0, `${path}=${text}: ${body.message} against ${problems}`);
      }),
      { numRuns: 300, seed: 4 },
    );
  });

  test("an unknown field is refused", async () => {
    const { code, body } = await create(manifest(["algorithm.batchsize=8"]));
    assert.equal(code, 400);
    assert.match(body.message, /unknown field "spec\.algorithm\.batchsize"/);
  });
});

const STATUS: TrainingRunStatus = {
  observedGeneration: 1,
  phase: "Running",
  conditions: [
    {
      type: "Ready",
      status: "True",
      reason: "Training",
      message: "Iteration 8 of 12 collects.",
      lastTransitionTime: "2026-01-01T00:00:00Z",
      observedGeneration: 1,
    },
  ],
  iteration: 7,
  policyVersion: "1-7",
  score: { best: 293.7790080000008, mean: 448.543, validFraction: 0.906 },
  evaluation: {
    protocol: "Paper",
    before: { iteration: 0, samples: 256, validFraction: 0.76, mean: 1207.3, best: 308.24, bestFromScratch: 310 },
    after: {
      iteration: 12,
      samples: 256,
      validFraction: 0.96,
      best: 299.5,
      bestImproved: 299.5,
      bestMedal: "gold",
      medalFraction: 0.1,
      aboveMedianFraction: 0.5,
    },
  },
  meanDurationSeconds: 1.26,
  engineSeconds: { generating: 30.5, updating: 20, idleActors: 1, idlePrograms: 2, idleStaleness: 3, idleOther: 0.125 },
  executions: { queued: 4, running: 8, completed: 300, lost: 1 },
  actors: {
    desired: 4,
    running: 3,
    idle: 1,
    waiting: 1,
    waitingReason: "image",
    replicas: 4,
    selector: "longrun.dev/run=other",
  },
  checkpoint: { iteration: 7, digest: "a".repeat(64), path: "checkpoints/7" },
  startTime: "2026-01-01T00:00:00Z",
  percent: 58,
  estimatedCompletion: "2026-01-01T01:00:00Z",
  display: { iteration: "7/12", best: "293.8", mean: "448.5", valid: "91%", actors: "3/4" },
};

describe("lists of items with a key", { skip }, () => {
  /** Applies one variable of the learner's container. */
  const apply = (manager: string, name: string, more = {}) =>
    call("APPLY", `${RUNS}/managers?fieldManager=${manager}`, {
      ...{ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "managers" } },
      spec: {
        ...more,
        learner: { podTemplate: { spec: { containers: [{ name: "learner", env: [{ name, value: "1" }] }] } } },
      },
    });

  test("Two managers own an item each, and neither loses it", async () => {
    const { spec } = manifest([]);
    assert.equal((await apply("argocd", "A", { tasks: spec.tasks, model: spec.model })).code, 201);
    const { code, body } = await apply("platform-team", "B");
    assert.equal(code, 200, body.message);
    const names = body.spec.learner.podTemplate?.spec?.containers?.[0]?.env?.map(({ name }) => name);
    assert.deepEqual(names, ["A", "B"]);
  });

  test("The API server and the reader of manifests refuse the same key twice", async () => {
    const run = manifest([]);
    const twice = { ...run, spec: { ...run.spec, tasks: [run.spec.tasks[0]!, run.spec.tasks[0]!] } };
    const { code, body } = await create(twice);
    assert.deepEqual([code, body.message.includes("Duplicate value")], [422, true], body.message);
    assert.throws(() => parseTrainingRun(JSON.stringify(twice), "run.json", [], { cluster: true }), ManifestError);
  });
});

describe("status and scale", { skip }, () => {
  test("The status keeps every field of its schema, and a change of the spec cannot touch it", async () => {
    const run = await existing("status", { before: [] });
    const { code, body } = await call("PUT", `${RUNS}/status/status`, {
      ...run,
      spec: { ...run.spec, suspend: true },
      status: STATUS,
    });
    assert.equal(code, 200, body.message);
    assert.deepEqual(body.status, STATUS);
    assert.deepEqual([body.spec.suspend, body.metadata.generation], [false, 1]);
    const changed = await call("PATCH", `${RUNS}/status`, { spec: { suspend: true }, status: { iteration: 9 } });
    assert.deepEqual([changed.body.status, changed.body.metadata.generation], [STATUS, 2]);
  });

  test("A status that comes with a new TrainingRun is dropped, except for the check of its name", async () => {
    const answer = await create({ ...manifest(["metadata.name=7a"]), status: STATUS });
    assert.equal(answer.code, 422);
    assert.match(answer.body.message, /names of pods and of a Service are made from metadata\.name/);
  });

  test("/scale sets replicas under External and reads the number of actors", async () => {
    const run = await existing("scaled", { before: ["actors.autoscaling=External"] });
    await call("PUT", `${RUNS}/scaled/status`, { ...run, status: STATUS });
    const { code, body } = await call("PATCH", `${RUNS}/scaled/scale`, { spec: { replicas: 6 } });
    assert.equal(code, 200, body.message);
    const scale = (await call("GET", `${RUNS}/scaled/scale`)).body as unknown as { spec: unknown; status: unknown };
    assert.deepEqual([scale.spec, scale.status], [{ replicas: 6 }, { replicas: 4, selector: "longrun.dev/run=other" }]);
    assert.equal((await call("GET", `${RUNS}/scaled`)).body.spec.actors.replicas, 6);
  });
});

describe("kubectl", { skip: skip ?? kubectlUnavailable() }, () => {
  const kubectl = (...args: string[]): { out: string; error: string } => {
    try {
      const options = { encoding: "utf8", timeout: 60_000, stdio: "pipe" } as const;
      return { out: execFileSync("kubectl", ["--kubeconfig", cluster.kubeconfig, ...args], options), error: "" };
    } catch (error) {
      return { out: "", error: (error as { stderr: string }).stderr };
    }
  };

  test("get prints the columns for people", async () => {
    const run = await existing("printed", { before: [] });
    await call("PUT", `${RUNS}/printed/status`, { ...run, status: STATUS });
    const lines = (...args: string[]): string[][] =>
      kubectl("get", "trun", "printed", ...args)
        .out.trim()
        .split("\n")
        .map((line) => line.split(/ {2,}/));
    const [columns, row] = lines();
    assert.deepEqual(columns, ["NAME", "PHASE", "ITERATION", "BEST", "MEAN", "VALID", "ACTORS", "AGE"]);
    assert.deepEqual(row!.slice(0, -1), ["printed", "Running", "7/12", "293.8", "448.5", "91%", "3/4"]);
    assert.deepEqual(lines("-o", "wide")[1]!.slice(-3), ["True", "Training", "Iteration 8 of 12 collects."]);
    const found = kubectl("get", "longrun", "--field-selector", "status.phase=Running", "-o", "name").out;
    assert.match(found, /^trainingrun\.longrun\.dev\/printed$/m);
    const { resources } = (await call("GET", "/apis/longrun.dev/v1alpha1")).body as unknown as Discovery;
    const { shortNames, categories } = resources.find(({ name }) => name === "trainingruns")!;
    assert.deepEqual(
      [shortNames, categories],
      [
        ["trun", "truns"],
        ["all", "longrun"],
      ],
    );
  });

  test("scale explains itself under Demand, and works under External", async () => {
    await existing("kubectl-scale", { before: [] });
    const scale = (): { out: string; error: string } => kubectl("scale", "trun", "kubectl-scale", "--replicas", "4");
    assert.match(
      scale().error,
      /spec\.actors\.replicas: .* actors\.replicas \(kubectl scale\) needs actors\.autoscaling External; under Demand longrun sets the number itself, between actors\.min and actors\.max/,
    );
    await call("PATCH", `${RUNS}/kubectl-scale`, { spec: { actors: { autoscaling: "External" } } });
    assert.equal(scale().out, "trainingrun.longrun.dev/kubectl-scale scaled\n");
  });

  test("apply of an unchanged manifest sends no patch", () => {
    const file = join(mkdtempSync(join(tmpdir(), "longrun-apply-")), "run.json");
    writeFileSync(file, JSON.stringify(manifest(["metadata.name=apply-twice"])));
    assert.equal(kubectl("apply", "-f", file).out, "trainingrun.longrun.dev/apply-twice created\n");
    assert.equal(kubectl("apply", "-f", file).out, "trainingrun.longrun.dev/apply-twice unchanged\n");
  });

  test("explain documents a field with its meaning, bounds and choices", () => {
    assert.match(
      kubectl("explain", "trun.spec.actors.replicas").out,
      /Number of actors with External; kubectl scale sets it too/,
    );
    const autoscaling = kubectl("explain", "trun.spec.actors.autoscaling").out;
    assert.match(autoscaling, /ENUM:\n\s+Demand\n\s+External/);
    const all = kubectl("explain", "trun", "--recursive").out;
    for (const field of ["publicData", "sandboxResources", "estimatedCompletion", "waitingReason"])
      assert.match(all, new RegExp(`\\b${field}\\b`));
  });
});

interface Discovery {
  resources: { name: string; shortNames?: string[]; categories?: string[] }[];
}

function kubectlUnavailable(): string | undefined {
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore", timeout: 30_000 });
    return undefined;
  } catch {
    return "kubectl is not on the PATH; install it to run these tests";
  }
}
