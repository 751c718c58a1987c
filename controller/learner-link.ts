/**
 * The controller's connections to learners: one per run, which follows the status stream and carries the calls.
 *
 *     const links = new LearnerLinks({ dial, certificates, onChange: (key) => queue.add(key) });
 *     links.ensure("default/quickstart", { uid, serverName: "quickstart-learner.default.svc" });
 *     links.observed("default/quickstart")?.status?.executions;
 *     await links.suspend("default/quickstart", { reason: "spec.suspend is true", drainSeconds: 600 });
 *
 * A link dials again for as long as it takes; what it last heard stays readable meanwhile. After a status that no other
 * follows (succeeded, failed) it stays closed; a suspended learner may be replaced by one that goes on.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { status as Code } from "@grpc/grpc-js";
import type { TlsFiles } from "../proto/certificates.ts";
import { clientCredentialsOf } from "../proto/channel.ts";
import {
  clientOptions,
  decodeStatus,
  LearnerControlClient,
  LearnerStatusClient,
  type PhaseName,
  type TerminationMessage,
} from "../proto/service.ts";
import { type LearnerStatus, parseCheckpoint, parseLearnerStatus } from "./learner-status.ts";
import { readNewest } from "./newest.ts";

/** `namespace/name` of a TrainingRun. */
export type RunKey = string;

export interface LinkTarget {
  /** Of the TrainingRun: another one of the same name gets a link of its own. */
  uid: string;
  /** A name in the learner's certificate, whatever address it is dialled by. */
  serverName: string;
  /** Of the learner's process, e.g. its pod's uid: a new one is dialled at once. */
  instance?: string;
}

export interface LearnerLinksOptions {
  /**
   * Where the run's learner can be reached now: its Service, or this end of a port-forward. `close` is called when the
   * connection is over. Rejects if it cannot be reached, or when `signal` fires; it is called again later.
   */
  dial(key: RunKey, target: LinkTarget, signal: AbortSignal): Promise<{ address: string; close(): void }>;
  /** A certificate of role `controller`, for one connection. */
  certificates(key: RunKey, target: LinkTarget): Promise<TlsFiles>;
  /** What `observed` says has changed. Not called from within `ensure` or `drop`. */
  onChange(key: RunKey): void;
  /** First pause before dialling again; doubles up to `maxReconnectSeconds`, each shortened by chance. [0.5] */
  reconnectSeconds?: number;
  /** [15] */
  maxReconnectSeconds?: number;
  /** A learner that is not reached, or has not sent its status, by then is dialled again. [15] */
  firstStatusSeconds?: number;
  /** Deadline of a call that only has to be heard. [10] */
  callSeconds?: number;
  /** Beyond the time that running executions are given: for an optimiser update that is carried through, and for writing the checkpoint. [900] */
  suspendSeconds?: number;
  /** Shortest time between two statuses of one learner that are handled; of those in between the newest counts. [0.25] */
  statusSeconds?: number;
  /** A longer status ends the connection. A status with the 10,000 actors that a run may have is shorter. [1 MiB] */
  maxStatusBytes?: number;
  /** A connection that ends earlier counts as a failure: the next pause is longer than the last. [5] */
  steadySeconds?: number;
  random?: () => number;
  /** Unix milliseconds. */
  now?: () => number;
}

export interface LearnerObserved {
  /** The status stream is open. */
  connected: boolean;
  /** Unix milliseconds: connected, or not, since. */
  sinceMs: number;
  /** Why it is not connected, one line. */
  error?: string;
  /** The newest, from this or an earlier connection. */
  status?: LearnerStatus;
}

export interface SuspendOptions {
  reason: string;
  /** How long executions that run may take to end; those that run on are run again after the resume. */
  drainSeconds: number;
}

/** What a learner answers to Suspend. */
export interface Suspended {
  /** Absent while no iteration is finished. */
  checkpoint: LearnerStatus["checkpoint"];
  /** Executions that did not end in time. */
  running: number;
}

/** A call needs a connection: reconcile again when `onChange` says that there is one. */
export class NotConnectedError extends Error {
  override readonly name = "NotConnectedError";
}

export class LearnerLinks {
  readonly #options: Required<LearnerLinksOptions>;
  readonly #links = new Map<RunKey, Link>();

  constructor(options: LearnerLinksOptions) {
    this.#options = {
      reconnectSeconds: 0.5,
      maxReconnectSeconds: 15,
      firstStatusSeconds: 15,
      callSeconds: 10,
      suspendSeconds: 900,
      statusSeconds: 0.25,
      maxStatusBytes: 1024 * 1024,
      steadySeconds: 5,
      random: Math.random,
      now: Date.now,
      ...options,
    };
  }

  /** Keeps a link to this run's learner from now on. Cheap if there is one. */
  ensure(key: RunKey, target: LinkTarget): void {
    const existing = this.#links.get(key);
    if (existing?.target.uid === target.uid && existing.target.serverName === target.serverName) {
      if (existing.target.instance !== target.instance) existing.redial(target);
      return;
    }
    existing?.close();
    this.#links.set(key, new Link(key, target, this.#options));
  }

  /** Ends the link and forgets what it heard. */
  drop(key: RunKey): void {
    this.#links.get(key)?.close();
    this.#links.delete(key);
  }

  /** Ends all links. */
  close(): void {
    for (const key of [...this.#links.keys()]) this.drop(key);
  }

  /** Undefined without `ensure`. */
  observed(key: RunKey): LearnerObserved | undefined {
    return this.#links.get(key)?.observed;
  }

  /**
   * These actors finish what they run and exit. @returns those that are not connected: they are told when they come back
   * @throws NotConnectedError | grpc.ServiceError
   */
  async drainActors(key: RunKey, actors: string[], reason: string): Promise<string[]> {
    const { callSeconds } = this.#options;
    const { notConnected } = await this.#call(key, (it) => it.drainActors({ actors, reason }, callSeconds));
    return notConnected ?? [];
  }

  /**
   * Resolves when the checkpoint of the last finished iteration is on disk and the learner trains no more. Can be called
   * again: a suspension that is under way is joined.
   * @throws NotConnectedError | grpc.ServiceError
   */
  async suspend(key: RunKey, { reason, drainSeconds }: SuspendOptions): Promise<Suspended> {
    const seconds = drainSeconds + this.#options.suspendSeconds;
    const { checkpoint, running } = await this.#call(key, (it) => it.suspend({ reason, drainSeconds }, seconds));
    return { checkpoint: parseCheckpoint(checkpoint), running: running ?? 0 };
  }

  /**
   * Tells of sandbox containers that ended, and of actors that were taken away; the same ones may be told again. @returns
   * attempts that this has given the outcome outOfMemory
   * @throws NotConnectedError | grpc.ServiceError
   */
  async reportTerminations(key: RunKey, terminations: TerminationMessage[], disrupted: string[] = []): Promise<number> {
    const { callSeconds } = this.#options;
    const { outOfMemory } = await this.#call(key, (it) =>
      it.reportTerminations({ terminations, disrupted }, callSeconds),
    );
    return outOfMemory ?? 0;
  }

  #call<T>(key: RunKey, call: (control: LearnerControlClient) => Promise<T>): Promise<T> {
    const answer = this.#links.get(key)?.call(call);
    if (answer === undefined) throw new NotConnectedError(`run ${key}: its learner is not connected`);
    return answer;
  }
}

/** One run's connection, made again whenever it breaks. */
class Link {
  readonly key: RunKey;
  target: LinkTarget;
  observed: LearnerObserved;
  /** While connected. */
  #control: LearnerControlClient | undefined;
  /** Calls on their way, which keep the connection open: the status stream of a learner that was suspended ends first. */
  readonly #calls = new Set<Promise<unknown>>();
  readonly #options: Required<LearnerLinksOptions>;
  readonly #closing = new AbortController();
  /** Ends the pause before the next dialling. */
  #wake = new AbortController();

  constructor(key: RunKey, target: LinkTarget, options: Required<LearnerLinksOptions>) {
    this.key = key;
    this.target = target;
    this.#options = options;
    this.observed = { connected: false, sinceMs: options.now(), error: "not dialled yet" };
    void this.#follow();
  }

  close(): void {
    this.#closing.abort();
  }

  /** Of a learner that was replaced; an open connection goes on until it breaks. */
  redial(target: LinkTarget): void {
    this.target = target;
    this.#wake.abort();
  }

  /** @returns undefined while it is not connected */
  call<T>(call: (control: LearnerControlClient) => Promise<T>): Promise<T> | undefined {
    const answer = this.#control && call(this.#control);
    if (answer === undefined) return undefined;
    const over: Promise<void> = answer.then(
      () => void this.#calls.delete(over),
      () => void this.#calls.delete(over),
    );
    this.#calls.add(over);
    return answer;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 0; !signal.aborted; ) {
      this.#wake = new AbortController();
      let heardMs: number | undefined;
      const error = await this.#connect(() => {
        heardMs = performance.now();
      }).catch((cause: Error) => cause.message);
      const phase = heardMs === undefined ? undefined : this.observed.status?.phase;
      this.#observe({ connected: false, error });
      const steady = heardMs !== undefined && performance.now() - heardMs >= this.#options.steadySeconds * 1000;
      failures = steady ? 0 : failures + 1;
      const woken = AbortSignal.any([signal, this.#wake.signal]);
      if (phase === "SUCCEEDED" || phase === "FAILED_RUN") await aborted(woken);
      else await sleep(this.#pauseSeconds(phase, failures) * 1000, undefined, { signal: woken }).catch(() => {});
    }
  }

  #pauseSeconds(phase: PhaseName | undefined, failures: number): number {
    const { reconnectSeconds, maxReconnectSeconds, random } = this.#options;
    // A suspended learner says so again at every connection until it is stopped.
    const doubled = phase === "STOPPED" ? Number.POSITIVE_INFINITY : reconnectSeconds * 2 ** Math.min(failures, 16);
    return Math.min(maxReconnectSeconds, doubled) * (0.5 + 0.5 * random());
  }

  /** One connection, from dialling to the end of its status stream. @returns why it ended */
  async #connect(onHeard: () => void): Promise<string> {
    const { signal } = this.#closing;
    const { certificates, firstStatusSeconds, statusSeconds, maxStatusBytes } = this.#options;
    const tls = await certificates(this.key, this.target);
    const { address, close } = await this.#dial();
    const client = new LearnerStatusClient(address, clientCredentialsOf(tls), {
      ...clientOptions(address, { maxMessageBytes: maxStatusBytes }),
      "grpc.ssl_target_name_override": this.target.serverName,
      "grpc.use_local_subchannel_pool": 1,
    });
    const stream = client.watchEncoded();
    const cancel = () => stream.cancel();
    const late = setTimeout(cancel, firstStatusSeconds * 1000);
    signal.addEventListener("abort", cancel);
    if (signal.aborted) cancel();
    try {
      return await new Promise<string>((resolve) => {
        let heard = false;
        // What it said first stays said until it connects anew, so that nonsense that comes and goes is told once.
        let nonsense: string | undefined;
        let undecodable = false;
        const reader = readNewest(stream, statusSeconds, (bytes) => {
          const status = parse(bytes);
          if (status === undefined) {
            undecodable = true;
            cancel();
            return;
          }
          if (!heard) {
            clearTimeout(late);
            this.#control = new LearnerControlClient(address, clientCredentialsOf(tls), {
              channelOverride: client.getChannel(),
            });
            onHeard();
            heard = true;
          }
          nonsense ??= status.nonsense;
          this.#observe({ connected: true, status: { ...status, nonsense } });
        });
        stream.on("error", () => {}); // told by `status`
        stream.on("status", ({ code, details }) => {
          reader.end();
          if (undecodable) resolve("the learner sent what is no status of the protocol: check spec.learner.image");
          resolve(
            heard || code !== Code.CANCELLED
              ? details || "the learner ended the stream"
              : `no status from ${address} within ${firstStatusSeconds} s`,
          );
        });
      });
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", cancel);
      this.#control = undefined;
      await Promise.race([Promise.all(this.#calls), aborted(signal)]);
      client.close();
      close();
    }
  }

  /** @throws after `firstStatusSeconds`, whatever `dial` does */
  async #dial(): Promise<{ address: string; close(): void }> {
    const { dial, firstStatusSeconds } = this.#options;
    const late = AbortSignal.timeout(firstStatusSeconds * 1000);
    const signal = AbortSignal.any([this.#closing.signal, late]);
    const reason = () =>
      new Error(late.aborted ? `the learner was not reached within ${firstStatusSeconds} s` : "the link was closed");
    const dialled = dial(this.key, this.target, signal).then((connection) => {
      if (!signal.aborted) return connection;
      connection.close();
      throw reason();
    });
    const gaveUp = Promise.withResolvers<never>();
    const giveUp = () => gaveUp.reject(reason());
    signal.addEventListener("abort", giveUp);
    try {
      return await Promise.race([dialled, gaveUp.promise]);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  #observe({ connected, error, status = this.observed.status }: Omit<LearnerObserved, "sinceMs">): void {
    if (this.#closing.signal.aborted) return;
    const before = this.observed;
    const sinceMs = before.connected === connected ? before.sinceMs : this.#options.now();
    this.observed = { connected, sinceMs, ...(error !== undefined && { error }), ...(status && { status }) };
    if (before.connected !== connected || before.error !== error || !isDeepStrictEqual(before.status, status))
      this.#options.onChange(this.key);
  }
}

/** @returns undefined where the bytes are no status */
function parse(bytes: Buffer): LearnerStatus | undefined {
  try {
    return parseLearnerStatus(decodeStatus(bytes));
  } catch {
    return undefined;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
