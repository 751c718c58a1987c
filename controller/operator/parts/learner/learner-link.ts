/**
 * The controller's connections to learners. Each run has one, which follows the status stream and carries the calls.
 *
 *     const links = new LearnerLinks({ dial, certificates, onChange: (key) => queue.add(key) });
 *     links.ensure("default/quickstart", { uid, serverName: "quickstart-learner.default.svc" });
 *     links.observed("default/quickstart")?.status?.executions;
 *     await links.suspend("default/quickstart", { reason: "spec.suspend is true", drainSeconds: 600 });
 *
 * A link redials until the learner answers; the last status stays readable meanwhile. After a final status (succeeded, failed) it stays
 * closed. A suspended learner may be replaced by one that continues.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { status as Code } from "@grpc/grpc-js";
import type { TlsFiles } from "../../../../proto/certificates.ts";
import { clientCredentialsOf } from "../../../../proto/channel.ts";
import {
  clientOptions,
  decodeStatus,
  LearnerControlClient,
  LearnerStatusClient,
  type PhaseName,
  type TerminationMessage,
} from "../../../../proto/service.ts";
import { type LearnerStatus, parseCheckpoint, parseLearnerStatus } from "./learner-status.ts";
import { readNewest } from "./newest.ts";
import { Nonsense } from "./nonsense.ts";

/** `namespace/name` of a TrainingRun. */
type RunKey = string;

export interface LinkTarget {
  /** The TrainingRun's uid: another run with the same name gets a link of its own. */
  uid: string;
  /** A name in the learner's certificate, whatever address is dialled. */
  serverName: string;
  /** Identifies the learner's process, e.g. by its pod's uid. A new process is dialled at once. */
  instance?: string;
}

/** Deadline of a call that the learner only has to accept. */
const CALL_SECONDS = 10;
/** Time for a suspension beyond the time for running executions: for finishing an optimiser update and writing the checkpoint. */
const SUSPEND_SECONDS = 900;
/** Shortest time between two handled statuses of one learner; of the statuses in between only the newest is handled. */
const STATUS_SECONDS = 0.25;
/** A connection that ends earlier counts as a failure, so the next pause is longer. */
const STEADY_SECONDS = 5;

export interface LearnerLinksOptions {
  /**
   * Returns the learner's current address: its Service, or the local end of a port-forward. `close` is called when the connection has
   * ended. Rejects if the learner cannot be reached, or when `signal` fires; it is called again later.
   */
  dial(key: RunKey, target: LinkTarget, signal: AbortSignal): Promise<{ address: string; close(): void }>;
  /** Returns a certificate of role `controller`, for one connection. */
  certificates(key: RunKey, target: LinkTarget): Promise<TlsFiles>;
  /** Called when the result of `observed` has changed. Not called from within `ensure` or `drop`. */
  onChange(key: RunKey): void;
  /** First pause before redialling. Doubles up to `maxReconnectSeconds`; each pause is shortened at random. [0.5] */
  reconnectSeconds?: number;
  /** [15] */
  maxReconnectSeconds?: number;
  /** A learner is dialled again if it is not reached, or has sent no status, within this time. [15] */
  firstStatusSeconds?: number;
  /** A longer status ends the connection. A status with 10,000 actors, a run's maximum, is shorter. [1 MiB] */
  maxStatusBytes?: number;
  /** An invalid field of a status is reported until all statuses have been valid for this long. [60] */
  nonsenseSeconds?: number;
  random?: () => number;
  /** Returns Unix milliseconds. */
  now?: () => number;
}

export interface LearnerObserved {
  /** The status stream is open. */
  connected: boolean;
  /** Since when it is connected or not connected, in Unix milliseconds. */
  sinceMs: number;
  /** Why it is not connected, in one line. */
  error?: string;
  /** The newest status, from this or an earlier connection. */
  status?: LearnerStatus;
}

interface SuspendOptions {
  reason: string;
  /** How long running executions may take to end. Those that do not end in time run again after the resume. */
  drainSeconds: number;
}

/** A learner's answer to Suspend. */
export interface Suspended {
  /** Absent if no iteration is finished. */
  checkpoint: LearnerStatus["checkpoint"];
  /** Executions that did not end in time. */
  running: number;
}

/** A call needs a connection: reconcile again when `onChange` reports one. */
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
      nonsenseSeconds: 60,
      maxStatusBytes: 1024 * 1024,
      random: Math.random,
      now: Date.now,
      ...options,
    };
  }

  /** Keeps a link to this run's learner from now on. Cheap if there is one already. */
  ensure(key: RunKey, target: LinkTarget): void {
    const existing = this.#links.get(key);
    if (existing?.target.uid === target.uid && existing.target.serverName === target.serverName) {
      if (existing.target.instance !== target.instance) existing.redial(target);
      return;
    }
    existing?.close();
    this.#links.set(key, new Link(key, target, this.#options));
  }

  /** Closes the link and forgets its statuses. */
  drop(key: RunKey): void {
    this.#links.get(key)?.close();
    this.#links.delete(key);
  }

  /** Closes all links. */
  close(): void {
    for (const key of [...this.#links.keys()]) this.drop(key);
  }

  /** Returns undefined if `ensure` was not called. */
  observed(key: RunKey): LearnerObserved | undefined {
    return this.#links.get(key)?.observed;
  }

  /**
   * Makes these actors finish their programs and exit. @returns the actors that are not connected; they are told when they reconnect
   * @throws NotConnectedError | grpc.ServiceError
   */
  async drainActors(key: RunKey, actors: string[], reason: string): Promise<string[]> {
    const { notConnected } = await this.#call(key, (it) => it.drainActors({ actors, reason }, CALL_SECONDS));
    return notConnected ?? [];
  }

  /**
   * Resolves when the checkpoint of the last finished iteration is on disk and the learner has stopped training. A second call joins a
   * suspension in progress.
   * @throws NotConnectedError | grpc.ServiceError
   */
  async suspend(key: RunKey, { reason, drainSeconds }: SuspendOptions): Promise<Suspended> {
    const seconds = drainSeconds + SUSPEND_SECONDS;
    const { checkpoint, running } = await this.#call(key, (it) => it.suspend({ reason, drainSeconds }, seconds));
    return { checkpoint: parseCheckpoint(checkpoint), running: running ?? 0 };
  }

  /**
   * Reports ended sandbox containers and disrupted actors; repeated reports have no effect. @returns the number of attempts that got the
   * outcome outOfMemory by this report
   * @throws NotConnectedError | grpc.ServiceError
   */
  async reportTerminations(key: RunKey, terminations: TerminationMessage[], disrupted: string[] = []): Promise<number> {
    const { outOfMemory } = await this.#call(key, (it) =>
      it.reportTerminations({ terminations, disrupted }, CALL_SECONDS),
    );
    return outOfMemory ?? 0;
  }

  #call<T>(key: RunKey, call: (control: LearnerControlClient) => Promise<T>): Promise<T> {
    const answer = this.#links.get(key)?.call(call);
    if (answer === undefined) throw new NotConnectedError(`run ${key}: its learner is not connected`);
    return answer;
  }
}

/** One run's connection, which is opened again whenever it breaks. */
class Link {
  readonly key: RunKey;
  target: LinkTarget;
  observed: LearnerObserved;
  /** While connected. */
  #control: LearnerControlClient | undefined;
  /** Running calls, which keep the connection open: a suspended learner ends its status stream before it answers. */
  readonly #calls = new Set<Promise<unknown>>();
  readonly #options: Required<LearnerLinksOptions>;
  readonly #closing = new AbortController();
  /** Ends the pause before the next dial. */
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

  /** For a learner that was replaced. An open connection stays until it breaks. */
  redial(target: LinkTarget): void {
    this.target = target;
    this.#wake.abort();
  }

  /** @returns undefined if the link is not connected */
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
      const steady = heardMs !== undefined && performance.now() - heardMs >= STEADY_SECONDS * 1000;
      failures = steady ? 0 : failures + 1;
      const woken = AbortSignal.any([signal, this.#wake.signal]);
      if (phase === "SUCCEEDED" || phase === "FAILED_RUN") await aborted(woken);
      else await sleep(this.#pauseSeconds(phase, failures) * 1000, undefined, { signal: woken }).catch(() => {});
    }
  }

  #pauseSeconds(phase: PhaseName | undefined, failures: number): number {
    const { reconnectSeconds, maxReconnectSeconds, random } = this.#options;
    // A suspended learner reports its suspension at every connection until it is stopped.
    const doubled = phase === "STOPPED" ? Number.POSITIVE_INFINITY : reconnectSeconds * 2 ** Math.min(failures, 16);
    return Math.min(maxReconnectSeconds, doubled) * (0.5 + 0.5 * random());
  }

  /** Dials and follows the status stream to its end. @returns why it ended */
  async #connect(onHeard: () => void): Promise<string> {
    const { signal } = this.#closing;
    const { certificates, firstStatusSeconds, maxStatusBytes, nonsenseSeconds } = this.#options;
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
        let last: LearnerStatus | undefined;
        const nonsense = new Nonsense(nonsenseSeconds, () => this.#observe({ connected: true, status: last }));
        let undecodable = false;
        const reader = readNewest(stream, STATUS_SECONDS, (bytes) => {
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
          last = status;
          this.#observe({ connected: true, status: { ...status, nonsense: nonsense.next(status.nonsense) } });
        });
        stream.on("error", () => {}); // `status` reports the error
        stream.on("status", ({ code, details }) => {
          reader.end();
          nonsense.end();
          if (undecodable)
            resolve("the learner sent a message that is no status of the protocol: check spec.learner.image");
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

  /** @throws Error after `firstStatusSeconds`, whatever `dial` does */
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

/** @returns undefined if the bytes are no status */
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
