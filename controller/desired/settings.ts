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
  /** HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the controller, which the Job that fetches a model gets too. */
  proxy?: Readonly<Record<string, string>>;
  /** What runs get that they leave out. */
  runDefaults?: RunDefaults;
  /** Whether a run that names a queue has a Workload of its own, and no pod before Kueue admits that. */
  kueue?: boolean;
}

/** Of tests. No command takes it: longrun publishes no images, and a name without a registry is one that anybody can publish. */
export const DEFAULT_SETTINGS = {
  image: "registry.example.com/ml/longrun/learner:0.2.0",
  actorImage: "registry.example.com/ml/longrun/actor:0.2.0",
  sandboxImage: "registry.example.com/ml/longrun/sandbox:0.2.0",
  imagePullPolicy: "IfNotPresent",
} satisfies Settings;
