import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { MINIMAL } from "../../../crds/manifest.fixture.ts";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { resolveForThisMachine } from "./resolve.ts";
import { checkRuntime, readRuntime, withRuntimeHere } from "./runtime.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-runtime-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "runtime.yaml");
writeFileSync(
  file,
  `apiVersion: longrun.dev/v1alpha1
kind: TrainingRuntime
metadata: { name: small, uid: 1a, generation: 3, creationTimestamp: "2026-01-01T00:00:00Z", managedFields: [] }
spec:
  actors: { max: 3, slots: 2, isolation: Pod }
  limits: { actors: 4 }
`,
);
const runOf = (...set: string[]) => parseTrainingRun(MINIMAL, "run.yaml", set);
const runtime = readRuntime(file)!;

describe("--runtime on this machine", () => {
  test("A run gets the runtime's defaults that a machine can honour, and loses its reference", () => {
    const run = withRuntimeHere(runOf("runtimeRef.name=small", "model.policy=quickstart"), "run.yaml", runtime);
    const { actors, runtimeRef } = resolveForThisMachine(run, "run.yaml", folder).spec;
    assert.deepEqual([actors.max, actors.slots, actors.isolation, runtimeRef], [3, 2, "Container", undefined]);
  });

  test("A run that takes more is refused with field, value and runtime", () =>
    assert.throws(
      () => withRuntimeHere(runOf("actors.max=5"), "run.yaml", runtime),
      /^ManifestError: run\.yaml: TrainingRuntime small does not allow it: spec\.actors\.max is 5; limits\.actors is 4$/,
    ));

  test("A run that names another runtime is refused", () =>
    assert.throws(
      () => withRuntimeHere(runOf("runtimeRef.name=large"), "run.yaml", runtime),
      /run\.yaml: spec\.runtimeRef\.name is large, and --runtime is TrainingRuntime small; give the manifest of large/,
    ));

  test("Without --runtime a reference is refused with the remedy", () =>
    assert.throws(
      () =>
        resolveForThisMachine(
          withRuntimeHere(runOf("runtimeRef.name=small"), "run.yaml", undefined),
          "run.yaml",
          folder,
        ),
      /spec\.runtimeRef cannot be used here: works on Kubernetes only; give its manifest with --runtime FILE/,
    ));

  test("For Kubernetes the runtime's isolation counts", () =>
    assert.throws(
      () => checkRuntime(runOf(), "run.yaml", runtime),
      /TrainingRuntime small does not allow it: spec\.actors\S* does not fit: actors\.isolation Pod runs one execution per pod/,
    ));

  test("A missing file is named", () =>
    assert.throws(() => readRuntime(join(folder, "none")), /--runtime .*none: there is no such file/));
});
