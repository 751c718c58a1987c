/** Tests removed fields and values on a real API server: the messages to each client, and stored TrainingRuns that have them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../test/cluster/control-plane.ts";
import { type Answer, ApiServer } from "./api-server.fixture.ts";
import { applyOverride, parseOverride } from "./overrides.ts";
import { releasedCrd } from "./released.fixture.ts";
import { REMOVED_FIELDS, REMOVED_VALUES } from "./removed.ts";
import { BASE } from "./rule-cases.ts";
import { CRD_FILE } from "./schema.ts";
import type { TrainingRun } from "./trainingrun.ts";

const RUNS = "/apis/longrun.dev/v1alpha1/namespaces/default/trainingruns";
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingruns.longrun.dev";
const FIELDS = ["model.precision=Float32", "algorithm.klTarget=0.3", "algorithm.klHorizon=9"];
const VALUES = Object.entries(REMOVED_VALUES).map(([path, value]) => `${path.replace("spec.", "")}=${value}`);

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
const manifest = (name: string, overrides: string[]): TrainingRun => {
  const run = parse(BASE);
  for (const override of [`metadata.name=${name}`, ...overrides]) applyOverride(run, parseOverride(override));
  return run;
};

/** Replaces the CRD, and waits until the API server serves it. */
async function installCrd(crd: { spec: unknown }): Promise<void> {
  const { code, body } = await call("PATCH", CRD, { spec: crd.spec });
  assert.equal(code, 200, body.message);
  const knows = async (): Promise<boolean> => {
    const probe = manifest("probe", ["model.precision=Float32"]);
    const { code } = await call("POST", `${RUNS}?dryRun=All&fieldValidation=Strict`, probe);
    return (code === 201) === JSON.stringify(crd.spec).includes('"precision"');
  };
  for (let tries = 0; !(await knows()); tries++) {
    assert.ok(tries < 100, "the CRD is served within 10 s");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

describe("the API server", { skip }, () => {
  for (const override of [...FIELDS, "algorithm.klController=Adaptive"]) {
    const path = `spec.${override.split("=")[0]}`;
    test(`The API server refuses ${override} by name, or warns and drops it`, async () => {
      assert.ok(path in REMOVED_FIELDS);
      const strict = await call("POST", `${RUNS}?fieldValidation=Strict`, manifest("strict", [override]));
      assert.equal(strict.code, 400);
      assert.match(strict.body.message, new RegExp(`^TrainingRun in version .*: unknown field "${path}"$`));
      const applied = await call("APPLY", `${RUNS}/ssa?fieldManager=test`, manifest("ssa", [override]));
      assert.match(applied.body.message, new RegExp(`\\.${path}: field not declared in schema$`));
      const lenient = await call("POST", `${RUNS}?dryRun=All`, manifest("lenient", [override]));
      assert.equal(lenient.code, 201, lenient.body.message);
      assert.equal(lenient.warnings.join(), `299 - "unknown field \\"${path}\\""`);
    });
  }
  for (const override of VALUES)
    test(`The API server refuses ${override}, and lists the values`, async () => {
      const [path, value] = override.split("=");
      const { code, body } = await call("POST", RUNS, manifest("value", [override]));
      assert.equal(code, 422);
      const blamed = body.details!.causes!.filter(({ field }) => field === `spec.${path}`);
      assert.match(blamed[0]!.message, new RegExp(`^Unsupported value: "${value}": supported values: "`));
      assert.equal(blamed.length, 1);
    });
});

describe("a TrainingRun that an older CRD has stored", { skip }, () => {
  test("loses removed fields, keeps removed values, and can have a status, be corrected and be deleted", async () => {
    const current = (await call("GET", CRD)).body as never as { spec: unknown };
    await installCrd(releasedCrd());
    const old = manifest("old", [...FIELDS, ...VALUES, "algorithm.klController=Adaptive"]);
    const created = await call("POST", `${RUNS}?fieldValidation=Strict`, old);
    assert.equal(created.code, 201, created.body.message);
    await installCrd(current);

    const { body } = await call("GET", `${RUNS}/old`);
    for (const path of Object.keys(REMOVED_FIELDS)) {
      const [, part, field] = path.split(".") as [string, "model" | "algorithm", string];
      assert.ok(!(field in body.spec[part]), path);
    }
    assert.equal(body.spec.algorithm.stalenessPolicy, "Mask");
    const status = await call("PUT", `${RUNS}/old/status`, { ...body, status: { phase: "Running" } });
    assert.equal(status.code, 200, status.body.message);
    const other = await call("PATCH", `${RUNS}/old?fieldValidation=Strict`, { spec: { suspend: true } });
    assert.equal(other.code, 200, other.body.message);
    const algorithm = { stalenessPolicy: "Drop", whitening: "Plain", timeoutWeight: "One" };
    const corrected = await call("PATCH", `${RUNS}/old?fieldValidation=Strict`, { spec: { algorithm } });
    assert.equal(corrected.code, 200, corrected.body.message);
    assert.equal((await call("DELETE", `${RUNS}/old`)).code, 200);
  });
});
