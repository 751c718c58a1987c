/** Conditions that tests of one run named `run` often wait for. */
import { findCondition } from "../../controller/conditions.ts";
import { eventually, type World } from "./world.ts";

export function stepsIn(world: () => World) {
  const conditionOf = async (namespace: string, type: Parameters<typeof findCondition>[1], name = "run") =>
    findCondition((await world().status(namespace, name)).conditions, type);
  return {
    conditionOf,
    /** The controller is connected to the run's learner. */
    answers: (namespace: string) =>
      eventually(async () => (await conditionOf(namespace, "LearnerAvailable"))?.status === "True"),
    hasReason: (namespace: string, type: Parameters<typeof findCondition>[1], reason: string) =>
      eventually(async () => {
        const found = await conditionOf(namespace, type);
        return found?.reason === reason && found;
      }),
    hasEvent: (namespace: string, pattern: RegExp) =>
      eventually(async () => (await world().events(namespace)).find((text) => pattern.test(text))),
  };
}
