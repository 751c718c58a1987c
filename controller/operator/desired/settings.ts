import type { DnsServers } from "./dns.ts";

/** Settings of the controller that all runs share. */
export interface Settings {
  /** The learner's image, if the run names none. */
  image: string;
  /** Image of an actor's supervisor, if the run names none. */
  actorImage: string;
  /** Image in which programs run, if the run names none. */
  sandboxImage: string;
  imagePullPolicy: "Always" | "IfNotPresent" | "Never";
  /** Namespace of the controller's pods. Undefined: the controller is not in this cluster. */
  controllerNamespace?: string;
  /** Hosts that webhooks may be posted to (webhook-hosts.ts). Absent or empty: none. */
  webhookHosts?: readonly string[];
  /** DNS servers that pods may ask. Absent: those of common clusters (dns.ts). */
  dns?: DnsServers;
  /** HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the controller. Jobs that fetch a model or copy results get them too. */
  proxy?: Readonly<Record<string, string>>;
  /** Name of the TrainingRuntime of runs that name none. */
  defaultRuntime?: string;
  /** Whether a run that names a queue gets a Workload, and no pod before Kueue admits the Workload. */
  kueue?: boolean;
}
