import assert from "node:assert/strict";
import { test } from "node:test";
import { ENGINE_USES, type EngineSeconds, engineUse, IDLE_REASONS } from "./engine-seconds.ts";

const NOTHING = Object.fromEntries(ENGINE_USES.map((use) => [use, 0])) as Record<keyof EngineSeconds, number>;

test("The shares of the engine's time are over all iterations, whatever their lengths", () => {
  const use = engineUse([
    { ...NOTHING, generating: 30, updating: 10, idleOther: 10 },
    undefined, // an earlier version wrote this line
    { ...NOTHING, generating: 20, idleActors: 25, idlePrograms: 5 },
  ])!;
  const { main, ...shares } = use;
  assert.deepEqual(shares, { generating: 0.5, updating: 0.1, idle: 0.4 });
  assert.deepEqual(main, { share: 0.25, ...IDLE_REASONS.idleActors });
});

for (const reason of ["idleActors", "idlePrograms", "idleStaleness", "idleOther"] as const)
  test(`The main reason for an idle engine is ${reason}`, () => {
    const idle = { idleActors: 10, idlePrograms: 10, idleStaleness: 10, idleOther: 10, [reason]: 11 };
    const { main } = engineUse([{ ...NOTHING, ...idle }])!;
    assert.equal(main!.because, IDLE_REASONS[reason].because);
  });

test("An engine that hardly idles needs no remedy", () => {
  assert.equal(engineUse([{ generating: 91, idleActors: 9 }])!.main, undefined);
  assert.equal(engineUse([{ generating: 90, idleActors: 10 }])!.main!.share, 0.1);
});

test("Without measurements nothing is reported", () => {
  for (const iterations of [[], [undefined], [NOTHING], [{}]]) assert.equal(engineUse(iterations), undefined);
});
