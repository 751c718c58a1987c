/**
 * State of a run that this process keeps between reconciles. All of it may be lost at any time: it saves work and waiting, but no decision
 * depends on it alone.
 *
 * A step of a reconcile reads it and returns the fields that change; `settle` of context.ts applies them.
 */
import type { NotificationStatus } from "../../crds/trainingrun.ts";
import type { Inputs } from "./desired/inputs.ts";
import { childName, type Run } from "./desired/names.ts";
import type { ConfigMap } from "./kube/resources.ts";
import { TokenBucket } from "./kube/token-bucket.ts";
import type { Suspension } from "./lifecycle.ts";
import { Stabiliser } from "./parts/actors/autoscale.ts";
import type { NodeChoice, Workload } from "./parts/admission/desired.ts";
import type { Warning } from "./parts/learner/learner-state.ts";
import type { Finding } from "./status/conditions.ts";
import { STATUS_BURST, STATUS_REFILL_SECONDS } from "./status/status-writes.ts";
import type { Applied } from "./writes/writes.ts";

/** Read-only, except for three objects that have a state of their own: `stabiliser`, `applied` and `statusTokens`. */
export type RunMemory = Readonly<Fields>;

/** The fields that a step changes. */
export type Changes = Partial<RunMemory>;

interface Fields {
  run: Run;
  /** Name of its volume. */
  volume: string;
  stabiliser: Stabiliser;
  scaleDownSeconds: number;
  /** Stabiliser of the number of generators, and the `scaleDownSeconds` it was created for. */
  generationStabiliser: { scaleDownSeconds: number; stabiliser: Stabiliser } | undefined;
  /** Objects derived from one generation of the spec, the run's images and the nodes that Kueue chose. */
  derived: Derived | undefined;
  /** The desired Workload for one generation and queue. */
  workload: { of: string; desired: Workload } | undefined;
  /** The nodes that Kueue chose in one admission. */
  flavors: { of: string; choices: Record<string, NodeChoice[]> } | undefined;
  suspension: Suspension | undefined;
  applied: Applied;
  /** Versions of the secrets that were found right, the time until which they are, and the first expiry. */
  certificates: CertificateDates | undefined;
  /** The same for the actors' secrets, by actor; `versions` also has the authority's. */
  actorCertificates: ReadonlyMap<string, CertificateDates>;
  /** The same for the generators' secret. */
  generatorCertificate: CertificateDates | undefined;
  /** Actors that were told to leave, by name: the learner that told them, and the time. */
  toldToDrain: ReadonlyMap<string, { instance: string; atMs: number }>;
  /** Terminations that were reported to the learner. */
  reported: ReadonlySet<string>;
  /** Disrupted actors, by name: the learner to which the disruption was reported. */
  toldDisrupted: ReadonlyMap<string, string>;
  /** Time since which the learner does not hear a running actor, by name. */
  silentSinceMs: ReadonlyMap<string, number>;
  /** Time since which the learner does not use a generator, by address. */
  unusedSinceMs: ReadonlyMap<string, number>;
  /** The newest warning about an object that makes no progress. */
  warning: { uid: string; atMs: number; warning: Warning | undefined } | undefined;
  /** Why no actor could be created, and the time of the next try. */
  refusal: { finding: Finding; generation: number; untilMs: number } | undefined;
  /** Delivery state of the webhook, which may be newer than the status. */
  notification: NotificationStatus | undefined;
  /** Calls to the learner or the webhook that have not returned. */
  calls: ReadonlySet<string>;
  statusWrittenMs: number;
  /** Remaining budget of status writes. */
  statusTokens: TokenBucket;
  /** Time since which a running learner is not connected. */
  unheardSinceMs: number | undefined;
  /** Time since which the learner's Deployment should have a pod and has none. */
  podlessSinceMs: number | undefined;
  /** Uid of the learner's pod that was deleted by force. */
  forceDeleted: string | undefined;
  /** Time since which the learner has stopped without being asked to. */
  stoppedSinceMs: number | undefined;
}

/** Dates of the certificates in the secrets with these resource versions; Unix milliseconds. */
export interface CertificateDates {
  versions: string;
  /** Whether the learner's certificate is also valid for calls to generators. */
  dials?: boolean;
  renewAtMs: number;
  expireAtMs: number;
}

export interface Derived {
  /** Key of the generation, images and nodes that the objects were derived from. */
  of: string;
  config: ConfigMap;
  configHash: string;
  /** See actorHash. */
  actorHash: string;
  inputs: Inputs;
}

/** Changes the memory of a run in place, so every holder of `memory` sees the change. */
export function remember(memory: RunMemory, changes: Changes): void {
  Object.assign(memory, changes);
}

export class Memories {
  readonly #runs = new Map<string, RunMemory>();

  /** Returns the memory of this run. An earlier run with the same name leaves no memory. */
  of(key: string, run: Run, nowMs: number): RunMemory {
    const known = this.#runs.get(key);
    const { scaleDownSeconds } = run.spec.actors;
    if (known?.run.metadata.uid === run.metadata.uid) {
      const isChanged = known.scaleDownSeconds !== scaleDownSeconds;
      remember(known, { run, ...(isChanged && { scaleDownSeconds, stabiliser: stabiliserOf(run, nowMs) }) });
      return known;
    }
    const memory: RunMemory = {
      run,
      volume: childName(run, "data"),
      stabiliser: stabiliserOf(run, nowMs),
      scaleDownSeconds,
      generationStabiliser: undefined,
      derived: undefined,
      workload: undefined,
      flavors: undefined,
      suspension: undefined,
      applied: new Map(),
      certificates: undefined,
      actorCertificates: new Map(),
      generatorCertificate: undefined,
      toldToDrain: new Map(),
      reported: new Set(),
      toldDisrupted: new Map(),
      silentSinceMs: new Map(),
      unusedSinceMs: new Map(),
      warning: undefined,
      refusal: undefined,
      notification: undefined,
      calls: new Set(),
      statusWrittenMs: 0,
      statusTokens: new TokenBucket(1 / STATUS_REFILL_SECONDS, STATUS_BURST),
      unheardSinceMs: undefined,
      podlessSinceMs: undefined,
      stoppedSinceMs: undefined,
      forceDeleted: undefined,
    };
    this.#runs.set(key, memory);
    return memory;
  }

  /** @returns the remembered value */
  forget(key: string): RunMemory | undefined {
    const memory = this.#runs.get(key);
    this.#runs.delete(key);
    return memory;
  }
}

/** A controller that has just started knows no demand, so the earlier desired number counts for one more window. */
function stabiliserOf(run: Run, nowMs: number): Stabiliser {
  const stabiliser = new Stabiliser(run.spec.actors.scaleDownSeconds);
  const before = run.status?.actors?.desired;
  if (before !== undefined) stabiliser.next(Math.min(before, run.spec.actors.max), nowMs / 1000);
  return stabiliser;
}
