import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Run } from "../../desired/names.ts";
import { runOf } from "../../run.fixture.ts";
import { defaultStorageClass, desiredVolume } from "./desired.ts";

describe("The size of the volume", () => {
  const claim = (size: string, phase: string) => ({
    ...{ metadata: { name: "quick-data" }, status: { phase } },
    spec: { resources: { requests: { storage: size } } },
  });
  const CASES: [what: string, present: ReturnType<typeof claim> | undefined, size: string][] = [
    ["a new claim", undefined, "100Gi"],
    ["one that is to grow", claim("50Gi", "Bound"), "100Gi"],
    ["one that grew by itself", claim("0.2Ti", "Bound"), "0.2Ti"],
    ["the same in other words", claim("102400Mi", "Bound"), "102400Mi"],
    ["one without a volume, which cannot grow yet", claim("50Gi", "Pending"), "50Gi"],
  ];
  for (const [what, present, size] of CASES)
    test(`The size is ${size}: ${what}`, () => {
      const run = runOf({ learner: { storage: { size: "100Gi" } } });
      const desired = desiredVolume(run, "quick-data", { succeeded: false, present: present as never });
      assert.deepEqual(desired.spec!.resources!.requests, { storage: size });
    });
  test("A run without a size gets the size that its learner asks for, or 100Gi; a size of the run takes precedence", () => {
    const sizeFor = (run: Run, wantedSize?: string) =>
      desiredVolume(run, "quick-data", { succeeded: false, wantedSize }).spec!.resources!.requests!.storage;
    assert.deepEqual([sizeFor(runOf()), sizeFor(runOf(), "297Gi")], ["100Gi", "297Gi"]);
    assert.equal(sizeFor(runOf({ learner: { storage: { size: "50Gi" } } }), "297Gi"), "50Gi");
  });
});

describe("volume", () => {
  const CASES: [retain: string, succeeded: boolean, goes: boolean][] = [
    ["Always", false, false],
    ["Always", true, false],
    ["OnSuccess", false, true],
    ["OnSuccess", true, false],
    ["Never", false, true],
    ["Never", true, true],
  ];
  for (const [retain, succeeded, goes] of CASES)
    test(`retain ${retain}: a ${succeeded ? "succeeded" : "failed"} run ${goes ? "loses" : "keeps"} it`, () => {
      const volume = desiredVolume(runOf({ learner: { storage: { retain } } }), "quick-data", { succeeded });
      assert.equal(volume.metadata.ownerReferences!.length, goes ? 1 : 0);
    });

  const CLASSES: [what: string, byDefault: string | undefined, claim: object | undefined, expected?: string][] = [
    ["a new claim has the administrator's class", "fast", undefined, "fast"],
    ["one that waits without a class gets it", "fast", {}, "fast"],
    ["one with a volume and no class stays so", "fast", { volumeName: "pv-1" }],
    ["a class stays when the administrator names another", "fast", { storageClassName: "slow" }, "slow"],
    ["a class stays when the administrator names none any more", undefined, { storageClassName: "slow" }, "slow"],
  ];
  for (const [what, className, spec, expected] of CLASSES)
    test(`The storage class is right: ${what}`, () => {
      const defaults = className === undefined ? undefined : { learner: { storage: { className } } };
      const claim = spec && ({ metadata: { name: "quick-data" }, spec } as never);
      assert.equal(defaultStorageClass(defaults as never, claim), expected);
    });
});
