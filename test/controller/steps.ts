/** Steps that tests of one run, named `run` unless they say otherwise, have in common. */
import { findCondition } from "../../controller/conditions.ts";
import { eventually, type World } from "./world.ts";

export function stepsIn(world: () => World) {
  const conditionOf = async (namespace: string, type: Parameters<typeof findCondition>[1], name = "run") =>
    findCondition((await world().status(namespace, name)).conditions, type);
  /** Waits until the controller is connected to the run's learner. */
  const answers = (namespace: string, name = "run") =>
    eventually(async () => {
      const available = (await conditionOf(namespace, "LearnerAvailable", name))?.status === "True";
      return available && world().learners.get(`${namespace}/${name}`);
    });
  return {
    conditionOf,
    answers,
    /** Creates a namespace with a run, and waits until its learner answers. */
    start: async (spec: Record<string, unknown> = {}, name = "run") => {
      const namespace = await world().namespace();
      const run = await world().createRun(namespace, name, spec);
      return { namespace, name, run, learner: await answers(namespace, name) };
    },
    hasActors: (namespace: string, count: number, name = "run") =>
      eventually(async () => {
        const jobs = await world().actors(namespace, name);
        return jobs.length === count && jobs;
      }),
    hasReason: (namespace: string, type: Parameters<typeof findCondition>[1], reason: string) =>
      eventually(async () => {
        const found = await conditionOf(namespace, type);
        return found?.reason === reason && found;
      }),
    hasEvent: (namespace: string, pattern: RegExp) =>
      eventually(async () => (await world().events(namespace)).find((text) => pattern.test(text))),
  };
}
