/** Learners and actors that are stopped after the tests of a file. */
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { newSample } from "../store/store.fixture.ts";
import { type Attempt, closeActors, type Learner, startLearner, TestActor } from "./server.fixture.ts";

const learners: Learner[] = [];
after(async () => {
  closeActors();
  await Promise.all(learners.map((learner) => learner.stop()));
});

export async function newLearner(options: Parameters<typeof startLearner>[0] = {}): Promise<Learner> {
  const learner = await startLearner(options);
  learners.push(learner);
  return learner;
}

export async function newActor(learner: Learner, name = "actor-0", slots = 1): Promise<TestActor> {
  const actor = new TestActor(learner.address, name);
  await actor.hello({ slots });
  actor.ready(slots);
  return actor;
}

/** Returns an actor that leased sample `a`. */
export async function leased(options: Parameters<typeof startLearner>[0] = {}) {
  const learner = await newLearner(options);
  learner.store.addSamples([newSample("a")]);
  const actor = await newActor(learner);
  return { ...learner, learner, actor, lease: await actor.nextLease() };
}

export const plain = ({ execution, number, fence }: Attempt) => ({ execution, number, fence });

export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 10) {
    if (waited > 15000) throw new Error(`waited 15 s until ${what}`);
    await sleep(10);
  }
}
