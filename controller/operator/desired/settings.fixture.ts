import type { Settings } from "./settings.ts";

/** Images of a registry that does not exist: longrun publishes none, and anybody could publish a name without a registry. */
export const DEFAULT_SETTINGS = {
  image: "registry.example.com/ml/longrun/learner:0.2.0",
  actorImage: "registry.example.com/ml/longrun/actor:0.2.0",
  sandboxImage: "registry.example.com/ml/longrun/sandbox:0.2.0",
  imagePullPolicy: "IfNotPresent",
} satisfies Settings;
