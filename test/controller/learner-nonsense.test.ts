/** A learner's status is untrusted input: no value may block the run's status. Uses a real API server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findCondition } from "../../controller/operator/status/conditions.ts";
import type { StatusMessage } from "../../proto/service.ts";
import { Phase } from "./simulated-learner.ts";
import { skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

const LINE = { iteration: 3, lineage: 1, elapsedSeconds: 60, meanScore: 900.5, validFraction: 0.75 };
const NONSENSE: [what: string, said: StatusMessage][] = [
  ["bad JSON", { iterationJson: "{" }],
  ["an iteration of -5", { iterationJson: JSON.stringify({ ...LINE, iteration: -5 }) }],
  ["1e300 seconds", { iterationJson: JSON.stringify({ ...LINE, elapsedSeconds: 1e300 }) }],
  ["an evaluation in bad JSON", { evaluationJson: "nope" }],
  ["a medal of lead", { evaluationJson: '{"after":{"iteration":1,"samples":2,"bestMedal":"lead"}}' }],
  ["a block that every object has", { blocked: "constructor" }],
  ["a phase that nobody knows", { phase: 77 as never }],
  ["more executions than the status can hold", { executions: { queued: 4e9 } }],
];

useWorld();

describe("nonsense from a learner", { skip, concurrency: 4 }, () => {
  for (const [what, said] of NONSENSE)
    test(`The condition names ${what} once, the status continues, and the end is noticed`, async () => {
      const { namespace, learner } = await start();
      learner.say(said);
      const found = await eventually(async () => {
        const available = findCondition((await world.status(namespace, "run")).conditions, "LearnerAvailable");
        return available?.reason === "LearnerNonsense" && available;
      });
      const [field] = Object.keys(said);
      assert.match(found.message, new RegExp(`: ${field}\\S* is .*, must be `));
      assert.equal(found.status, "True");
      // The run's status follows the valid parts.
      learner.say({ phase: Phase.TRAINING, iteration: 4, executions: { completed: 7 } });
      await eventually(async () => {
        const { conditions, executions } = await world.status(namespace, "run");
        return findCondition(conditions, "Progressing")?.reason === "Training" && executions?.completed === 7;
      });
      learner.say({ ...said, phase: Phase.FAILED_RUN, message: "the disk is full" });
      await eventually(async () => (await world.status(namespace, "run")).phase === "Failed");
      await eventually(async () => (await world.deployment(namespace, "run"))?.spec?.replicas === 0);
      const told = (await world.events(namespace)).filter((it) => it.startsWith("LearnerNonsense"));
      assert.equal(told.length, 1, told.join("\n"));
    });

  test("Nonsense that appears and disappears causes no loop of writes", async () => {
    const { namespace, learner } = await start();
    learner.say({ blocked: "constructor" });
    await eventually(async () => (await world.events(namespace)).some((it) => it.startsWith("LearnerNonsense")));
    await sleep(1000);
    const from = world.auditLength();
    for (let i = 0; i < 100; i++) {
      learner.say({ blocked: i % 2 ? "constructor" : "", iterationJson: i % 3 ? "{" : `[${i}]` });
      await sleep(20);
    }
    await sleep(1000);
    assert.deepEqual(world.writes(namespace, from), []);
  });
});
