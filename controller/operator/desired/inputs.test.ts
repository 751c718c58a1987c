import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { V1Container } from "@kubernetes/client-node";
import { parse, stringify } from "yaml";
import { releasedCrd } from "../../../crds/released.fixture.ts";
import { readSchema, type Schema, withoutDefaults } from "../../../crds/schema.ts";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { actorHash, desiredActor } from "../parts/actors/desired.ts";
import { desiredLearner, learnerHash } from "../parts/learner/desired.ts";
import { runOf } from "../run.fixture.ts";
import { desiredConfigMap } from "./config-map.ts";
import { inputsOf } from "./inputs.ts";
import { digestOf } from "./names.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

const ROOT = join(import.meta.dirname, "../../..");

describe("inputs", () => {
  const before = inputsOf(runOf());
  const SAME: [what: string, spec: object][] = [
    ["actors.max", { actors: { max: 7 } }],
    ["suspend", { suspend: true }],
    ["the webhook", { notifications: { webhook: { url: "https://example.com" } } }],
    ["the policy of upgrades", { upgradePolicy: "Immediately" }],
    ["a field with its default", { seed: 0, learner: { stopGraceSeconds: runOf().spec.learner.stopGraceSeconds } }],
  ];
  for (const [what, spec] of SAME)
    test(`The digests of all pods stay the same with ${what}`, () => assert.deepEqual(inputsOf(runOf(spec)), before));

  const LEARNER: [what: string, spec: object][] = [
    ["its image", { learner: { image: "own:1" } }],
    ["its resources", { learner: { resources: { limits: { memory: "3Gi" } } } }],
    ["its pod template", { learner: { podTemplate: { spec: { nodeSelector: { a: "b" } } } } }],
    ["what it computes", { algorithm: { learningRate: 0.5 } }],
    ["its probes", { learner: { startSeconds: 7 } }],
  ];
  for (const [what, spec] of LEARNER)
    test(`The learner's digest alone changes with ${what}`, () => {
      const { learner, actor } = inputsOf(runOf(spec));
      assert.notEqual(learner, before.learner);
      assert.equal(actor, before.actor);
    });

  const ACTOR: [what: string, spec: object][] = [
    ["the supervisor's image", { actors: { image: "own:1" } }],
    ["the sandbox's image", { actors: { sandboxImage: "own:1" } }],
    ["slots", { actors: { slots: 5 } }],
    ["a sandbox's memory", { tasks: [{ name: "diamonds", executionMemoryBytes: 2 ** 31 }] }],
    ["its runtime class", { actors: { runtimeClassName: "gvisor" } }],
  ];
  for (const [what, spec] of ACTOR)
    test(`The actors' digest changes with ${what}`, () => assert.notEqual(inputsOf(runOf(spec)).actor, before.actor));

  const GENERATOR: [what: string, spec: object, same: boolean][] = [
    ["more of them", { replicas: { max: 3 } }, true],
    ["their GPUs", { resources: { limits: { "nvidia.com/gpu": 4 } } }, false],
    ["their nodes", { podTemplate: { spec: { nodeSelector: { a: "b" } } } }, false],
  ];
  for (const [what, generation, same] of GENERATOR)
    test(`${same ? "No generator is" : "Generators are"} queued anew: ${what}`, () => {
      const [few, many] = [inputsOf(runOf({ generation: {} })), inputsOf(runOf({ generation }))];
      assert.equal(many.generator === few.generator, same);
      assert.equal(many.learner, few.learner);
    });

  /** Other values of a field, where the schema has simple ones. */
  const others = ({ type, enum: values, default: byDefault, minimum = 0, maximum = Infinity }: Schema): unknown[] => {
    if (values) return values.filter((value) => value !== byDefault);
    if (type === "boolean") return [byDefault !== true];
    if (type === "string") return ["other"];
    if (type !== "integer" && type !== "number") return [];
    const value = typeof byDefault === "number" ? byDefault : minimum;
    return [value + 1, Math.ceil(value / 2)].filter((it) => it !== value && it >= minimum && it <= maximum);
  };
  const { spec: schema } = readSchema().properties!;
  const settings = DEFAULT_SETTINGS;
  const hashes = (run: ReturnType<typeof runOf>) => ({
    learner: learnerHash(run, { configHash: digestOf(desiredConfigMap(run).data), claimName: "c", settings }),
    actor: actorHash(run, settings),
  });
  const made = hashes(runOf());
  type Spec = ReturnType<typeof runOf>["spec"];
  const PARTS: [at: string, fields: Schema, part: (spec: Spec) => object][] = [
    ["learner", schema!.properties!.learner!, ({ learner }) => learner],
    ["actors", schema!.properties!.actors!, ({ actors }) => actors],
    ["tasks[]", schema!.properties!.tasks!.items!, ({ tasks }) => tasks[0]!],
  ];
  for (const [at, { properties }, partOf] of PARTS)
    test(`The digest covers every simple field of ${at} that changes a pod`, () => {
      let changing = 0;
      const cases = Object.entries(properties!).flatMap(([name, it]) =>
        others(it).map((value) => [name, value] as const),
      );
      for (const [name, value] of cases) {
        const run = structuredClone(runOf());
        Object.assign(partOf(run.spec), { [name]: value });
        const now = hashes(run);
        const inputs = inputsOf(run);
        for (const part of ["learner", "actor"] as const) {
          if (now[part] === made[part]) continue;
          changing++;
          assert.notEqual(inputs[part], before[part], `${at}.${name} changes the pod of the ${part}`);
        }
      }
      assert.ok(changing > 2, `${changing} fields change a pod`);
    });

  test("The digest covers the nodes that Kueue chose", () => {
    assert.notDeepEqual(inputsOf(runOf(), { learner: [{ nodeSelector: { a: "b" } }] }), before);
  });

  test("Removed fields that an older CRD has stored change no digest, and reach no learner", () => {
    const older = structuredClone(runOf());
    Object.assign(older.spec.model, { precision: "Float32" });
    Object.assign(older.spec.algorithm, { klController: "Fixed", klTarget: 0.1, klHorizon: 10000 });
    assert.deepEqual(inputsOf(older), before);
    assert.deepEqual(desiredConfigMap(older), desiredConfigMap(runOf()));
  });

  /** Digests of the children of running runs. A version with other digests restarts every learner, so it needs a reason. */
  test("The digests equal the ones of every version so far", () => {
    assert.deepEqual(before, { learner: "798ede33c4426cbb", actor: "d2327ab30790183a" });
  });
});

/** A run keeps the images of the version that started it, so these must know the arguments with which its pods are started. */
describe("An image of 0.1.0", () => {
  const run = runOf({ actors: { isolation: "Pod", requireIsolation: false } });
  const inputs = { configHash: "c", claimName: "c", replicas: 1, settings: DEFAULT_SETTINGS } as const;
  const learner = desiredLearner(run, inputs).spec!.template.spec!;
  const actor = desiredActor(run, 0, 0, DEFAULT_SETTINGS).spec!.template.spec!;
  const KNOWN: [what: string, container: V1Container, options: string[], paths: string[]][] = [
    [
      "a learner's",
      learner.containers[0] as V1Container,
      ["--listen", "--manifest", "--metrics-listen", "--run", "--run-id", "--stay", "--task-dir", "--tls"],
      ["/config", "/data", "/tls", "/tmp"],
    ],
    [
      "a supervisor's",
      actor.containers[0] as V1Container,
      [
        ...["--allow-no-isolation", "--executions", "--inputs", "--learner", "--metrics-listen", "--name", "--run-id"],
        ...["--sandboxes", "--slots", "--tls"],
      ],
      ["/sandboxes", "/tls", "/tmp"],
    ],
    [
      "a sandbox's",
      actor.initContainers![0] as V1Container,
      ["--listen"],
      ["/dev/shm", "/sandbox", "/scratch", "/tmp"],
    ],
  ];
  for (const [what, { command, args = [], volumeMounts }, options, paths] of KNOWN)
    test(`It knows the options and mounts of ${what} container`, () => {
      assert.deepEqual([...command!, ...args].filter((text) => text.startsWith("--")).sort(), options);
      assert.deepEqual(volumeMounts!.map(({ mountPath }) => mountPath).sort(), paths);
    });
});

describe("the learner's configuration", () => {
  const files = globSync("manifests/{quickstart,examples,tasks/*}/*.yaml", { cwd: ROOT }).filter((file) =>
    /^kind: TrainingRun$/m.test(readFileSync(join(ROOT, file), "utf8")),
  );
  assert.ok(files.length > 10);
  const schema = readSchema();
  for (const file of files)
    test(`${file} means the same run without its defaults`, () => {
      const document = readFileSync(join(ROOT, file), "utf8")
        .split(/^---$/m)
        .find((text) => /^kind: TrainingRun$/m.test(text))!;
      const run = parseTrainingRun(document, file);
      const sparse = withoutDefaults(run, schema);
      assert.ok(JSON.stringify(sparse).length < JSON.stringify(run).length / 2);
      assert.deepEqual(parseTrainingRun(stringify(sparse), file), run);
      const { metadata } = runOf();
      const { data } = desiredConfigMap({ ...run, metadata: { ...metadata, ...run.metadata } });
      parseTrainingRun(data!["trainingrun.yaml"]!, "what its learner reads");
    });

  test("a learner of 0.1.0 knows every field of a run that uses nothing newer", () => {
    const old: Schema = releasedCrd().spec.versions[0].schema.openAPIV3Schema;
    const config = parse(desiredConfigMap(runOf()).data!["trainingrun.yaml"]!);
    assert.deepEqual(unknown(config.spec, old.properties!.spec!, "spec"), []);
  });
});

function unknown(value: unknown, { properties, items }: Schema, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => (items ? unknown(item, items, `${path}[]`) : []));
  if (value === null || typeof value !== "object" || !properties) return [];
  return Object.entries(value).flatMap(([name, part]) =>
    properties[name] ? unknown(part, properties[name], `${path}.${name}`) : [`${path}.${name}`],
  );
}
