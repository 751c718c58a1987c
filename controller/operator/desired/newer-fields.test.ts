import assert from "node:assert/strict";
import { test } from "node:test";
import { desiredActor } from "../parts/actors/desired.ts";
import { runOf } from "../run.fixture.ts";
import { NEWER_DEFAULTS, withNewerFields } from "./newer-fields.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

test("A run that a CRD of 0.1 has stored gets the defaults of this version's schema", () => {
  const run = runOf({ results: { s3: { bucket: "results", prefix: "quick" } } });
  const older = structuredClone(run);
  for (const [part, fields] of Object.entries(NEWER_DEFAULTS))
    if (part === "failurePolicy") delete (older.spec as { failurePolicy?: unknown }).failurePolicy;
    else
      for (const field of Object.keys(fields))
        delete (older.spec as never as Record<string, Record<string, unknown>>)[part]![field];
  assert.notDeepEqual(older, run);
  assert.equal(older.spec.results?.deadlineSeconds, undefined, "NEWER_DEFAULTS has every newer field");
  assert.deepEqual(withNewerFields(older), run);
  assert.deepEqual(withNewerFields(run), run);
  assert.deepEqual(withNewerFields(runOf()), runOf(), "a run without results gets none");
  assert.ok(
    desiredActor(withNewerFields(older), 0, 0, DEFAULT_SETTINGS).spec!.template.spec!.terminationGracePeriodSeconds! >
      0,
  );
});
