/**
 * Leader election by a Lease, with client-go's rules. The holder renews the Lease every `retrySeconds`. A holder that could not renew it
 * for `renewSeconds` stops. Another process takes the Lease when it has not changed for `leaseSeconds` by that process's own clock, so
 * clocks of different machines are never compared.
 *
 * A leader may be paused (SIGSTOP, a suspended machine, a long garbage collection) between a look at its clock and a write. Therefore the
 * writing client calls `assertLeading` in `ApiClient.beforeWrite`, when the connection is open and nothing was sent, and every write has a
 * precondition for the rest of the gap. The elector's own client must not call it.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "../api-client.ts";
import { type ApiError, isAlreadyExists, isConflict, LeaseLostError } from "../errors.ts";
import { LEASE, type Lease } from "../resources.ts";
import { suspensionAwareClock } from "./clock.ts";

export interface LeaderElectorOptions {
  client: ApiClient;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /** Unique to the process: a pod's name with a random part. */
  identity: string;
  /** How long a Lease stays valid without a renewal. Default 15. */
  leaseSeconds?: number;
  /** The leader stops if it could not renew for this long; less than `leaseSeconds`. Default 10. */
  renewSeconds?: number;
  /** Time between two tries to take or renew the Lease. Default 2. */
  retrySeconds?: number;
  /**
   * Called when this process leads. The signal aborts when the process was told to stop or lost the Lease. The Lease is renewed until the
   * promise settles and only then released, so two leaders never work at once.
   */
  onLeading: (signal: AbortSignal) => Promise<void> | void;
  /** Called when the Lease was lost while leading. The process must end, because another one now does its work. */
  onLost: (why: string) => void;
  /** Called when another process has become the leader. */
  onNewLeader?: (identity: string) => void;
  onLeadingChanged?: (leading: boolean) => void;
  /** Called when a try failed; it is repeated. */
  onError?: (error: Error) => void;
  /** Milliseconds. Must count the time in which the process or the machine was paused. */
  now?: () => number;
}

export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  readonly #now: () => number;
  /** The Lease as last read, and the time by the own clock when it was last seen to change. */
  #observed?: Lease;
  #observedMs = 0;
  #leader?: string;
  #leading = false;
  /** When the last successful renewal was sent. The Lease is ours for `leaseSeconds` from then, however long the answer took. */
  #renewedMs = 0;

  constructor(options: LeaderElectorOptions) {
    const { leaseSeconds = 15, renewSeconds = 10, retrySeconds = 2 } = options;
    if (!(leaseSeconds > renewSeconds && renewSeconds > retrySeconds * 1.2)) {
      throw new Error(
        `leader election: leaseSeconds ${leaseSeconds} > renewSeconds ${renewSeconds} > 1.2 x retrySeconds ${retrySeconds} does not hold; keep 15, 10 and 2`,
      );
    }
    this.#options = options;
    this.#leaseMs = leaseSeconds * 1000;
    this.#renewMs = renewSeconds * 1000;
    this.#retryMs = retrySeconds * 1000;
    this.#now = options.now ?? suspensionAwareClock();
  }

  /** Whether this process leads and its last renewal is recent enough that nobody else leads. */
  get isLeading(): boolean {
    return this.#leading && this.#now() - this.#renewedMs < this.#renewMs;
  }

  /** The leader at the last look; undefined before the first. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** Throws `LeaseLostError` unless `isLeading`. */
  readonly assertLeading = (): void => {
    if (this.isLeading) return;
    const age = ((this.#now() - this.#renewedMs) / 1000).toFixed(1);
    throw new LeaseLostError(
      this.#leading
        ? `Lease ${this.#place}: not renewed for ${age} s, another may lead; nothing is written`
        : `Lease ${this.#place}: this process does not lead; nothing is written`,
    );
  };

  /** Waits for the Lease, leads, and resolves when leading has ended: the Lease was lost or the process was told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !(await this.#holdLease(this.#renewMs))) await this.#pause(signal);
    if (this.#leading) await this.#lead(signal);
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { onLeading, onLost, onLeadingChanged } = this.#options;
    const work = new AbortController();
    const done = new AbortController();
    const stop = () => work.abort();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    onLeadingChanged?.(true);
    const working = (async () => {
      try {
        await onLeading(work.signal);
        if (!work.signal.aborted) await once(work.signal, "abort"); // onLeading may return while its work goes on
      } finally {
        done.abort();
      }
    })();
    working.catch(() => {}); // awaited below
    try {
      const lost = await this.#renewUntil(done.signal);
      if (!lost) await this.#release();
      this.#leading = false;
      if (lost) onLost(lost);
    } finally {
      this.#leading = false;
      work.abort();
      signal.removeEventListener("abort", stop);
      onLeadingChanged?.(false);
    }
    await working;
  }

  /** Renews the Lease. @returns why it was lost, or undefined when the signal aborted */
  async #renewUntil(signal: AbortSignal): Promise<string | undefined> {
    for (;;) {
      await this.#pause(signal);
      if (signal.aborted) return undefined;
      // Check before the try: a process that was paused past its lease must not renew and continue.
      if (!this.isLeading) return this.#lateness();
      await this.#holdLease(this.#renewMs - (this.#now() - this.#renewedMs));
      if (this.#leader && this.#leader !== this.#options.identity) {
        return `Lease ${this.#place} is held by ${this.#leader}`;
      }
      if (!this.isLeading) return this.#lateness();
    }
  }

  /** Tries once to take or renew the Lease, for at most `limitMs`. @returns whether the Lease is ours */
  async #holdLease(limitMs: number): Promise<boolean> {
    const { client, namespace, name, onError } = this.#options;
    const key = { namespace, name };
    const request = { signal: AbortSignal.timeout(Math.max(1, Math.round(limitMs))) };
    try {
      const sentMs = this.#now();
      // A renewal needs no read: it uses the version of the last own write, and a conflict means that another process wrote.
      if (!this.#leading) this.#observe(await client.get<Lease>(LEASE, key, request), sentMs);
      const current = this.#observed;
      if (!this.#isFree(current)) return false;
      const spec = this.#specAfter(current);
      const version = { resourceVersion: current?.metadata.resourceVersion };
      const written = current
        ? await client.mergePatch<Lease>(LEASE, key, { metadata: version, spec }, request)
        : await client.create<Lease>(LEASE, { metadata: key, spec }, request);
      this.#observe(written, sentMs);
      this.#renewedMs = sentMs;
      this.#leading = true;
      return true;
    } catch (error) {
      onError?.(error as Error);
      const rivalry = isConflict(error) || isAlreadyExists(error);
      if (!rivalry && (error as ApiError).status !== 404) return false;
      // Another process wrote or deleted it, or our own answer was lost: the holder's name decides.
      const seen = await client.get<Lease>(LEASE, key, request).catch(() => this.#observed);
      this.#observe(seen, this.#now());
      return false;
    }
  }

  #isFree(lease: Lease | undefined): boolean {
    const { holderIdentity, leaseDurationSeconds = 0 } = lease?.spec ?? {};
    if (!holderIdentity || holderIdentity === this.#options.identity) return true;
    return this.#now() >= this.#observedMs + Math.max(this.#leaseMs, leaseDurationSeconds * 1000);
  }

  #specAfter(current: Lease | undefined): NonNullable<Lease["spec"]> {
    const { identity } = this.#options;
    const time = new Date().toISOString().replace("Z", "000Z"); // MicroTime, for people; it is never compared
    const before = current?.spec;
    const ours = before?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.round(this.#leaseMs / 1000),
      acquireTime: ours && before?.acquireTime ? before.acquireTime : time,
      renewTime: time,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (before && !ours ? 1 : 0),
    };
  }

  #observe(lease: Lease | undefined, seenMs: number): void {
    if (lease?.metadata.resourceVersion !== this.#observed?.metadata.resourceVersion) this.#observedMs = seenMs;
    this.#observed = lease;
    const holder = lease?.spec?.holderIdentity || undefined;
    if (holder === this.#leader) return;
    this.#leader = holder;
    if (holder && holder !== this.#options.identity) this.#options.onNewLeader?.(holder);
  }

  /** Releases the Lease, so the next leader need not wait until it expires. If that fails, it expires. */
  async #release(): Promise<void> {
    const { client, namespace, name } = this.#options;
    const held = this.isLeading;
    this.#leading = false;
    if (!held) return;
    const time = new Date().toISOString().replace("Z", "000Z");
    await client
      .mergePatch(
        LEASE,
        { namespace, name },
        {
          metadata: { resourceVersion: this.#observed?.metadata.resourceVersion },
          spec: { holderIdentity: null, leaseDurationSeconds: 1, renewTime: time },
        },
      )
      .catch((error) => this.#options.onError?.(error));
  }

  #lateness(): string {
    const seconds = ((this.#now() - this.#renewedMs) / 1000).toFixed(1);
    return `Lease ${this.#place} was not renewed for ${seconds} s (${this.#renewMs / 1000} s are allowed)`;
  }

  get #place(): string {
    return `${this.#options.namespace}/${this.#options.name}`;
  }

  /** Adds up to a fifth at random, so that candidates do not all try at once. */
  async #pause(signal: AbortSignal): Promise<void> {
    await sleep(this.#retryMs * (1 + 0.2 * Math.random()), undefined, { signal }).catch(() => {});
  }
}
