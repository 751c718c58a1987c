/** The run that `kubectl longrun evaluate` creates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import type { Run } from "../operator/desired/names.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { runOf } from "../operator/run.fixture.ts";
import { evaluate } from "./changes.ts";
import type { Cluster } from "./cluster.ts";

test("The run that evaluates is one that the API server accepts, and copies nothing to the other run's bucket", async () => {
  const run = runOf({
    warmStart: { data: { configMap: { name: "answers" } } },
    results: { s3: { bucket: "bucket", prefix: "quick" } },
  });
  let made: Run | undefined;
  const client = {
    get: async () => run,
    create: async (_: unknown, object: Run) => {
      made = object;
      throw new ApiError("enough", { status: 400, reason: "BadRequest" });
    },
  };
  const cluster = { client, namespace: "team" } as unknown as Cluster;
  const options = { as: "check", samples: 8, keep: true, timeoutSeconds: 1, say: () => {} };
  await assert.rejects(evaluate(cluster, "quick", options), /enough/);
  const { initFrom, results } = parseTrainingRun(stringify(made), "made", [], { cluster: true }).spec;
  assert.deepEqual([initFrom, results], [{ run: "quick" }, undefined]);
});
