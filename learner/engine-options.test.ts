import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { policyFolder } from "../crds/policy.ts";
import { parseTrainingRun } from "../crds/trainingrun.ts";
import { place } from "./engine-options.ts";

/** Returns the plan's detail about the KV cache for a run with this instrumenter and these generators. */
async function cacheOf(instrumenter: string, generators: URL[]): Promise<string> {
  const text = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: {name: quick}
spec: {tasks: [{name: diamonds}], model: {policy: quickstart, instrumenter: ${instrumenter}, generationBatchSize: 16}}`;
  const { spec } = parseTrainingRun(text, "test");
  const options = { device: "cpu", memoryBytes: 64e9, generators };
  const { rows } = await place(
    policyFolder("quickstart", "test", "/models"),
    spec,
    options,
    pino({ level: "silent" }),
    false,
  );
  return rows.find(({ what }) => what === "cache")!.detail;
}

test("a learner with generators plans no slots, unless its frozen copy inserts markers into as many programs at once", async () => {
  const generators = [new URL("https://generators.test:8443")];
  assert.match(await cacheOf("Syntax", []), /of 16 x/);
  assert.match(await cacheOf("Syntax", generators), /of 1 x/);
  assert.match(await cacheOf("StaticPolicy", generators), /of 16 x/);
});
