/** The CRD of TrainingRuntime on a real API server. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { findBinary, missingBinaries } from "../test/cluster/binaries.ts";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../test/cluster/control-plane.ts";
import { type Answer, ApiServer, causesOf } from "./api-server.fixture.ts";
import { CRD_FILE } from "./schema.ts";

const RUNTIME_CRD = fileURLToPath(new URL("longrun.dev_trainingruntimes.yaml", import.meta.url));
const RUNTIMES = "/apis/longrun.dev/v1alpha1/trainingruntimes";
const ANNOTATION_BYTES = 262_144;
const skip = controlPlaneUnavailable() ?? false;
let cluster: ControlPlane;
let server: ApiServer;

before(async () => {
  if (skip) return;
  cluster = await startControlPlane({ crds: [CRD_FILE, RUNTIME_CRD] });
  server = new ApiServer(cluster);
});
after(async () => {
  server?.close();
  await cluster?.stop();
});

const create = (name: string, spec: object, query = ""): Promise<Answer> => {
  const runtime = { apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRuntime", metadata: { name }, spec };
  return server.call("POST", `${RUNTIMES}?fieldValidation=Strict${query}`, runtime);
};

test("The CRD fits the annotation of kubectl apply, and leaves a fifth of it free", () => {
  const bytes = JSON.stringify(parse(readFileSync(RUNTIME_CRD, "utf8"))).length;
  assert.ok(bytes < 0.8 * ANNOTATION_BYTES, `${bytes} bytes`);
});

describe("The API server", { skip }, () => {
  test("It stores a runtime as it was written, without defaults", async () => {
    const spec = { learner: { storage: { size: "7Gi" } }, actors: { max: 3 }, limits: { gpus: 2, images: ["a/*"] } };
    const { code, body } = await create("plain", spec);
    assert.equal(code, 201, body.message);
    assert.deepEqual(body.spec, spec);
  });

  const REFUSED: [what: string, spec: object, cause: RegExp][] = [
    ["an author's field", { algorithm: { batchSize: 8 } }, /unknown field "spec\.algorithm"/],
    ["an unknown limit", { limits: { gpu: 1 } }, /unknown field "spec\.limits\.gpu"/],
    [
      "what no pod of a run may have",
      { actors: { podTemplate: { spec: { hostNetwork: true } } } },
      /unknown field "spec\.actors\.podTemplate\.spec\.hostNetwork"/,
    ],
    [
      "a container of another name",
      { learner: { podTemplate: { spec: { containers: [{ name: "sidecar" }] } } } },
      /spec\.learner\.podTemplate\.spec\.containers\[0\]\.name/,
    ],
    ["a queue's wrong name", { queueName: "Team" }, /spec\.queueName.*LocalQueue/],
    ["too many GPUs of one learner", { limits: { gpus: -1 } }, /spec\.limits\.gpus/],
  ];
  for (const [what, spec, cause] of REFUSED)
    test(`It refuses ${what}`, async () => {
      const answer = await create("refused", spec, "&dryRun=All");
      assert.ok([400, 422].includes(answer.code), answer.body.message);
      assert.match([answer.body.message, ...causesOf(answer)].join("\n"), cause);
    });

  test("kubectl explains fields, and prints the columns for people", {
    skip: missingBinaries(["kubectl"]) ?? false,
  }, async () => {
    const kubectl = (...args: string[]) =>
      execFileSync(findBinary("kubectl")!, ["--kubeconfig", cluster.kubeconfig, ...args], { encoding: "utf8" });
    assert.match(kubectl("explain", "trainingruntime.spec.limits"), /gpus\s+<integer>\s+Most GPUs/);
    assert.match(kubectl("explain", "trun.spec.runtimeRef"), /platform's defaults and limits/);
    const spec = { learner: { device: "CUDA", image: "l:1" }, limits: { gpus: 4, actors: 64 }, queueName: "team" };
    assert.equal((await create("columns", spec)).code, 201);
    const [, ...shown] = kubectl("get", "trt", "columns", "-o", "wide", "--no-headers").trim().split(/\s+/);
    assert.deepEqual(shown.toSpliced(3, 1), ["CUDA", "4", "64", "l:1", "team"]);
  });
});
