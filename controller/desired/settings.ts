import type { RunDefaults } from "./run-defaults.ts";

/** What the controller was started with and every run shares. */
export interface Settings {
  /** Of the learner, where the run names none. */
  image: string;
  /** Of an actor's supervisor, where the run names none. */
  actorImage: string;
  /** Of what programs run in, where the run names none. */
  sandboxImage: string;
  imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  /** Where the controller's own pods are; undefined: not in this cluster. */
  controllerNamespace?: string;
  /** Hosts that webhooks may be posted to (webhook-hosts.ts); absent or empty: none. */
  webhookHosts?: readonly string[];
  /** What runs get that they leave out. */
  runDefaults?: RunDefaults;
  /** Whether a run that names a queue has a Workload of its own, and no pod before Kueue admits that. */
  kueue?: boolean;
}

export const DEFAULT_SETTINGS = {
  image: "longrun/learner:dev",
  actorImage: "longrun/actor:dev",
  sandboxImage: "longrun/sandbox:dev",
  imagePullPolicy: "IfNotPresent",
} satisfies Settings;
