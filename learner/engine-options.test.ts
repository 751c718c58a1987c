import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { policyFolder } from "../crds/policy.ts";
import { parseTrainingRun } from "../crds/trainingrun.ts";
import { EXIT_STATUS } from "../proto/exit-status.ts";
import { place } from "./engine-options.ts";
import { exitStatusOf } from "./failures.ts";

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

test("a learner with generators plans slots for instrumented programs alone", async () => {
  const generators = [new URL("https://generators.test:8443")];
  assert.match(await cacheOf("Syntax", []), /of 16 x/);
  assert.match(await cacheOf("Syntax", generators), /of 1 x/);
  assert.match(await cacheOf("StaticPolicy", generators), /of 16 x/);
});

test("a run that restarts with fewer working GPUs says so, and ends with the numbers if it no longer fits", async () => {
  const text = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: {name: quick}
spec: {tasks: [{name: diamonds}], model: {policy: quickstart}, learner: {resources: {limits: {nvidia.com/gpu: 16}}}}`;
  const { spec } = parseTrainingRun(text, "test");
  const policy = policyFolder("quickstart", "test", "/models");
  const options = { device: "auto", memoryBytes: 1e6, generators: [] };
  const placing = (restarted: boolean) => place(policy, spec, options, pino({ level: "silent" }), restarted);
  await assert.rejects(placing(false), (error: Error) => {
    assert.match(error.message, /^the run needs about \d+ MB of memory/);
    assert.equal(exitStatusOf(error, "firstStart", true), EXIT_STATUS.input);
    return true;
  });
  await assert.rejects(placing(true), (error: Error) => {
    const said =
      /^learner\.resources gives 16 GPUs, but \d+ work here[^\n]*; with what is left the run needs about \d+ MB of memory[^\n]*, but 1\.00 MB is given; [^\n]*$/;
    assert.match(error.message, said);
    assert.equal(exitStatusOf(error, "restart", true), EXIT_STATUS.infrastructure);
    return true;
  });
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  await place(policy, spec, { ...options, memoryBytes: undefined }, log, false);
  assert.deepEqual(lines, []);
  await place(policy, spec, { ...options, memoryBytes: undefined }, log, true);
  assert.match(lines.join(), /^the run goes on without a GPU: learner\.resources gives 16 GPUs, but \d+ work here/);
});
