import { parse } from "yaml";
import { desiredActor } from "../parts/actors/desired.ts";
import { desiredInit } from "../parts/inputs/init.ts";
import { desiredLearner } from "../parts/learner/desired.ts";
import { desiredConfigMap } from "./config-map.ts";
import type { Run } from "./names.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

export const claim = (claimName: string, subPath = "") => ({ persistentVolumeClaim: { claimName, subPath } });
export const CUSTOM = {
  tasks: [
    {
      name: "own",
      publicData: claim("data", "public"),
      privateData: claim("data", "private"),
      grader: { metric: "RMSE", idColumn: "id", targetColumns: ["y"], direction: "Lower" },
    },
  ],
};

export const SEVERAL = {
  tasks: [
    CUSTOM.tasks[0]!,
    { name: "diamonds" },
    {
      ...CUSTOM.tasks[0]!,
      ...{ name: "other", sandboxImage: "ours", weight: 2 },
      ...{ publicData: claim("more", "open"), privateData: claim("more", "answers") },
    },
  ],
  actors: { sandboxImage: "ours" },
};

export const learnerOf = (run: Run) =>
  desiredLearner(run, { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS });
export const actorOf = (run: Run) => desiredActor(run, 0, 0, DEFAULT_SETTINGS);
export const podsOf = (run: Run) => ({
  learner: learnerOf(run).spec!.template.spec!,
  actor: actorOf(run).spec!.template.spec!,
  init: desiredInit(run, "quick-data", "other-data", DEFAULT_SETTINGS).spec!.template.spec!,
});
export const configOf = (run: Run) => parse(desiredConfigMap(run).data!["trainingrun.yaml"]!);
