/** Connects the parts of the controller: caches, work queue, leader election, links to learners, metrics. */

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Address } from "../../proto/address.ts";
import { Caches, childKinds } from "./caches.ts";
import { Claims, LEASE_NAME } from "./claims/claims.ts";
import type { Context, Log } from "./context.ts";
import { childName, GRPC_PORT, type Run } from "./desired/names.ts";
import type { Settings } from "./desired/settings.ts";
import { serveHealth } from "./health.ts";
import { ApiClient } from "./kube/api-client.ts";
import { KubeMetrics } from "./kube/metrics.ts";
import { SECRET, type Secret, TRAINING_RUN, TRAINING_RUNTIME } from "./kube/resources.ts";
import { EventRecorder } from "./kube/runtime/event-recorder.ts";
import { LeaderElector } from "./kube/runtime/leader-elector.ts";
import { SelectedNamespaces } from "./kube/runtime/selected-namespaces.ts";
import { WorkQueue } from "./kube/runtime/work-queue.ts";
import { keyOf, parseKey } from "./kube/types.ts";
import { Memories } from "./memory.ts";
import { controllerCertificate, type SecretData } from "./parts/certificates/certificates.ts";
import { LearnerLinks, type LearnerLinksOptions, type LinkTarget } from "./parts/learner/learner-link.ts";
import { forwardPort } from "./parts/learner/port-forward.ts";
import { SWEEP_SECONDS, sweepVolumes } from "./parts/volume/retained-volumes.ts";
import { reconcile } from "./reconcile.ts";
import { runtimeNameOf } from "./runtimes/effective.ts";
import { Runtimes } from "./runtimes/runtimes.ts";
import { RunMetrics } from "./status/run-metrics.ts";
import { Expectations } from "./writes/expectations.ts";
import { isChildOf, learnerPodsOf } from "./writes/ownership.ts";

/** Name of the queue and of the label `controller`. */
const NAME = "trainingrun";
/** A longer reconcile counts as hanging, because each wait in a reconcile is shorter. */
const STUCK_SECONDS = 300;

export interface OperatorOptions {
  config: KubeConfig;
  settings: Settings;
  log: Log;
  /** Namespaces to serve; absent or empty: all. */
  namespaces?: readonly string[] | undefined;
  /** Labels of the namespaces to serve, as kubectl takes them; absent: whatever their labels. */
  namespaceSelector?: string | undefined;
  /** Class of the runs to serve; absent: runs without a class. */
  controllerClass?: string | undefined;
  /** Another controller that has not renewed its Lease for this long is gone. [300] */
  goneSeconds?: number | undefined;
  /** Settings of the Lease; undefined: this process runs alone, without leader election. */
  lease?:
    | { namespace: string; identity?: string; leaseSeconds?: number; renewSeconds?: number; retrySeconds?: number }
    | undefined;
  /** Address of metrics and health; undefined: they are not served. */
  metricsAddress?: Address | undefined;
  /** Whether learners are dialled by their Service; otherwise through the API server. */
  inCluster: boolean;
  /** Runs that are reconciled at once. [8] */
  workers?: number | undefined;
  /** Time between two checks of volumes whose runs are gone. [60] */
  sweepSeconds?: number | undefined;
  /** Requests a second to the API server on average, and at once. [50, 100] */
  qps?: number | undefined;
  burst?: number | undefined;
  /** The lease is lost: end the process. */
  onLost?: (why: string) => void;
  /** Replaces the connection to learners in tests. */
  dial?: LearnerLinksOptions["dial"];
  /** Replaces the links to learners in benchmarks with thousands of runs. */
  links?: Context["links"] & { close(): void };
  /** Unix milliseconds. */
  now?: () => number;
}

export interface Operator {
  /** Settles when the controller has stopped. */
  done: Promise<void>;
  metricsPort: number | undefined;
  /** Resolves when every kind is listed and, with leader election, this process leads. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

export async function startOperator(options: OperatorOptions): Promise<Operator> {
  const { config, settings, log, now = Date.now } = options;
  const metrics = new KubeMetrics();
  const kinds = childKinds(settings);
  for (const { plural } of [TRAINING_RUN, TRAINING_RUNTIME, ...kinds]) metrics.watches(plural);
  const stopping = new AbortController();
  const { signal } = stopping;
  const leading = Promise.withResolvers<void>();

  let elector: LeaderElector | undefined;
  const limits = { ...(options.qps && { qps: options.qps }), ...(options.burst && { burst: options.burst }) };
  const onWarning = (text: string, request: string) => log.warn({ request }, text);
  const observing = { onRequest: metrics.observeRequest, onWarning };
  const client = new ApiClient(config, { ...limits, ...observing, beforeWrite: () => elector?.assertLeading() });
  const queue = new WorkQueue({
    metrics: metrics.queue(NAME),
    onError: (run, error, retryInSeconds) =>
      log.warn({ run, retryInSeconds, error: (error as Error).message }, "reconcile failed"),
  });
  const namespaces = options.namespaces ?? [];
  const caches = new Caches({ client, namespaces, kinds, onChange: (key) => queue.add(key), metrics, log });
  const { namespaceSelector: selector } = options;
  const wakeAll = (namespace: string) => {
    for (const key of caches.runsIn(namespace)) queue.add(key);
  };
  const selected = selector ? new SelectedNamespaces({ client, selector, onChange: wakeAll, log }) : undefined;
  const runtimes = new Runtimes({
    client,
    log,
    onFault: (kind) => metrics.observeFault(TRAINING_RUNTIME.plural, kind),
    onChange: (name) => {
      for (const run of caches.runs()) if (runtimeNameOf(run, settings.defaultRuntime) === name) queue.add(keyOf(run));
    },
  });
  const links =
    options.links ??
    new LearnerLinks({
      dial: options.dial ?? dialler(options, caches),
      certificates: (key, target) => certificateOf(key, target, caches, now()),
      onChange: (key) => queue.add(key),
      now,
    });
  const events = new EventRecorder({
    client,
    now,
    onDropped: (why, error) => log.debug({ why, error: error?.message }, "an event was dropped"),
  });
  const context: Context = {
    cache: caches,
    client,
    links,
    events,
    settings,
    log,
    now,
    expectations: new Expectations(
      {
        get: (resource, key) => caches.get(resource, key),
        read: (resource, key) => client.get(resource, parseKey(key)),
      },
      now,
    ),
    claims: new Claims({
      identity: options.lease && `${options.lease.namespace}/${LEASE_NAME}`,
      client,
      now,
      controllerClass: options.controllerClass,
      goneSeconds: options.goneSeconds,
      serves: selected && ((namespace) => selected.has(namespace)),
    }),
    memories: new Memories(),
    runtimes,
    metrics: new RunMetrics(metrics.registry),
    wake: (key) => queue.add(key),
  };

  const work = async (until: AbortSignal) => {
    await Promise.race([
      Promise.all([caches.synced(), runtimes.settled, selected?.synced]),
      new Promise<void>((resolve) => until.addEventListener("abort", () => resolve(), { once: true })),
    ]);
    leading.resolve();
    const seconds = options.sweepSeconds ?? SWEEP_SECONDS;
    const claims = () =>
      caches.claims().filter(({ metadata }) => selected === undefined || selected.has(metadata.namespace ?? ""));
    const sweep = setInterval(() => void sweepVolumes(claims(), context), seconds * 1000);
    try {
      await queue.run((key) => reconcile(key, context), { concurrency: options.workers ?? 8, signal: until });
    } finally {
      clearInterval(sweep);
    }
  };
  const health =
    options.metricsAddress &&
    (await serveHealth({
      address: options.metricsAddress,
      registry: metrics.registry,
      sick: () =>
        queue
          .runningSeconds()
          .filter((seconds) => seconds > STUCK_SECONDS)
          .map((seconds) => `a reconcile has taken ${Math.round(seconds)} s`),
      unready: () => [...caches.faults(), ...(selected?.faults() ?? [])],
    }));

  const following = Promise.all([caches.run(signal), runtimes.run(signal), selected?.run(signal)]);
  // Without leader election this process leads; otherwise it leads when it has the lease.
  metrics.observeLeader(LEASE_NAME, options.lease === undefined);
  if (options.lease) elector = electorOf(options, options.lease, metrics, work);
  const working = elector ? elector.run(signal) : work(signal);
  const done = (async () => {
    try {
      await working;
    } finally {
      stopping.abort();
      links.close();
      await events.close();
      await following;
      client.close();
      await health?.close();
    }
  })();
  done.catch(() => {}); // callers that await it get the error
  return {
    done,
    metricsPort: health?.port,
    ready: () => Promise.race([leading.promise, done]),
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

function electorOf(
  { config, log, onLost }: OperatorOptions,
  { namespace, identity, ...seconds }: NonNullable<OperatorOptions["lease"]>,
  metrics: KubeMetrics,
  work: (signal: AbortSignal) => Promise<void>,
): LeaderElector {
  return new LeaderElector({
    // Renewals have their own client, so that they wait neither behind other requests nor for the lease.
    client: new ApiClient(config, { onRequest: metrics.observeRequest }),
    namespace,
    name: LEASE_NAME,
    ...seconds,
    identity: identity ?? `${hostname()}_${randomBytes(4).toString("hex")}`,
    onLeading: work,
    onLost: (why) => {
      log.warn({ why }, "the lease is lost");
      onLost?.(why);
    },
    onNewLeader: (leader) => log.info({ leader }, "another controller leads"),
    onLeadingChanged: (leads) => metrics.observeLeader(LEASE_NAME, leads),
    onError: (error) => log.warn({ error: error.message }, "the lease could not be taken or renewed"),
  });
}

/** In the cluster a learner is dialled by its Service; from outside its pod is reached through the API server. */
function dialler({ inCluster, config }: OperatorOptions, caches: Caches): LearnerLinksOptions["dial"] {
  if (inCluster) return async (_, { serverName }) => ({ address: `${serverName}:${GRPC_PORT}`, close() {} });
  return async (key, { uid }) => {
    const { namespace } = parseKey(key);
    const run = runOf(key, uid, caches);
    const pod = learnerPodsOf(run, caches).find(({ status }) => status?.phase === "Running");
    if (!pod) throw new Error("the learner has no running pod");
    return forwardPort(config, { namespace: namespace!, pod: pod.metadata.name, port: GRPC_PORT });
  };
}

async function certificateOf(key: string, { uid }: LinkTarget, caches: Caches, nowMs: number) {
  const run = runOf(key, uid, caches);
  const secret = caches.get(SECRET, `${run.metadata.namespace}/${childName(run, "ca")}`) as Secret | undefined;
  if (!secret || !isChildOf(run, secret)) throw new Error("the run has no certificate authority yet");
  return controllerCertificate(secret.data as SecretData, { name: run.metadata.name, now: nowMs });
}

function runOf(key: string, uid: string, caches: Caches): Run {
  const run = caches.trainingRun(key);
  if (run?.metadata.uid !== uid) throw new Error("the run is gone");
  return run;
}
