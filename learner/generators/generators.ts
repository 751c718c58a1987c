/**
 * The generators of a run as one writer of responses. Sends them the policy's weights by version, deals rows to generators with free slots,
 * gives the rows of a lost generator to another one, and uses no generator whose weights or log-probs differ from the learner's.
 */
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { readTls, type TlsBuffers } from "../../proto/tls-folder.ts";
import type { Engine } from "../engine/index.ts";
import { type addressesOf, resolveAll } from "./addresses.ts";
import { LogProbCheck } from "./check.ts";
import { Dealer } from "./dealing.ts";
import { GeneratorError } from "./errors.ts";
import { Faults, type GenerationCounts } from "./faults.ts";
import { type GeneratorState, isSame } from "./protocol.ts";
import { type GenerateOptions, type Listener, RowQueue, type VersionedResponse } from "./queue.ts";
import { RemoteGenerator } from "./remote.ts";
import { type Merge, type PublishedWeights, writeWeights } from "./weights.ts";

/** Interval between requests for a generator's state, and pause after a failure. */
const STATE_SECONDS = 2;
/** How often names are resolved again and certificates are read again. */
const RESOLVE_SECONDS = 10;
/** Time without a usable generator until a warning in log and terminal, and between two warnings. */
const WARN_SECONDS = 30;

export interface GeneratorsOptions {
  urls: readonly URL[];
  /** Folder with the learner's ca.crt, tls.crt and tls.key. */
  tlsDirectory: string;
  engine: Pick<Engine, "evaluate" | "savePolicy">;
  /** The learner's device. */
  device: GeneratorState["device"];
  /** A response ends with the first of these. */
  eosIds: readonly number[];
  vocabSize: number;
  /** For weights until every generator has them. */
  directory: string;
  /** For LoRA: sends full weights with the adapter merged in. Absent: sends the trained weights or adapter. */
  merge?: Merge | undefined;
  /** Whether the learner has the weights of this policy version now. */
  isCurrent: (policyVersion: number) => boolean;
  /** Time without a usable generator, while rows wait, until the run ends with an error. */
  noGeneratorSeconds: number;
  log: Logger;
  /** Shows a line to a person. */
  notice: (text: string) => void;
  /** Called when `status` has changed. */
  onChange?: () => void;
  /** Ends all rows at once, with its reason. */
  signal: AbortSignal;
  /** Replaces the look-up of names in tests. */
  addressesOf?: typeof addressesOf;
}

interface GeneratorStatus {
  address: string;
  ready: boolean;
  /** Rows that it generates. */
  running: number;
  /** Empty: it is used. */
  notUsedBecause: string;
  policyVersion?: number;
}

export class Generators {
  readonly #o: GeneratorsOptions;
  readonly #generators = new Map<string, RemoteGenerator>();
  /** URLs whose names no DNS server resolves, with the reason. */
  #unresolved: ReadonlyMap<string, string> = new Map();
  readonly #queue = new RowQueue();
  readonly #faults: Faults;
  readonly #dealer: Dealer;
  #tls: TlsBuffers;
  #current: PublishedWeights | undefined;
  #resolvedAt = Number.NEGATIVE_INFINITY;
  /** The look-up that has no answer yet. */
  #resolving: Promise<void> | undefined;
  /** Since when rows wait without a generator, and the time of the newest warning: milliseconds of `performance.now`. */
  #alone: { since: number; saidAt: number } | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @throws ChannelError `tlsFile` */
  constructor(options: GeneratorsOptions) {
    this.#o = options;
    this.#tls = readTls(options.tlsDirectory);
    const { engine, device, isCurrent, vocabSize, signal } = options;
    const queue = this.#queue;
    const faults = new Faults(options.log, () => options.onChange?.());
    this.#faults = faults;
    this.#dealer = new Dealer({
      generators: () => this.#generators.values(),
      weights: () => this.#current,
      check: new LogProbCheck({ engine, device, isCurrent, faults }),
      hasEnded: () => this.#isClosed || signal.aborted,
      queue,
      faults,
      vocabSize,
    });
    signal.addEventListener("abort", () => queue.failAll(signal.reason), { once: true });
    void this.#tick();
  }

  /** Number of rows that the reachable generators can generate at once. */
  get slots(): number {
    const answering = [...this.#generators.values()].filter(({ problem, state }) => problem === "" && !state?.draining);
    return answering.reduce((sum, { state }) => sum + (state?.slots ?? 0), 0);
  }

  /** For LearnerStatus: rows that wait in the learner, and each generator. */
  get status() {
    const known = [...this.#generators.values()].map((generator): GeneratorStatus => {
      const notUsedBecause = generator.notUsedBecause(this.#current) ?? "";
      const policyVersion = (generator.holds ?? generator.state)?.policyVersion ?? undefined;
      return {
        address: generator.name,
        ready: notUsedBecause === "",
        running: generator.rows,
        notUsedBecause,
        ...(policyVersion !== undefined && { policyVersion }),
      };
    });
    const unresolved = [...this.#unresolved].map(
      ([address, notUsedBecause]): GeneratorStatus => ({ address, ready: false, running: 0, notUsedBecause }),
    );
    return { waitingPrompts: this.#queue.waiting, generators: [...known, ...unresolved] };
  }

  /** Returns what happened since the last call. */
  takeCounts(): GenerationCounts {
    return this.#faults.take();
  }

  /**
   * Publishes the learner's current weights: further rows use them. The generators get them in the background.
   *
   * @param anew also if weights of this version were published: after a warm start they are others
   */
  async publish(policyVersion: number, { anew = false } = {}): Promise<void> {
    const before = this.#current;
    if (before?.policyVersion === policyVersion && !anew) return;
    const { log } = this.#o;
    this.#current = await writeWeights(this.#o, policyVersion);
    const { digest, kind, files } = this.#current;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    log.info({ policyVersion, digest, kind, bytes }, "generators get new weights");
    for (const generator of this.#generators.values()) void this.#bring(generator);
    if (before) await rm(before.folder, { recursive: true, force: true });
  }

  /**
   * Samples a response to each prompt, like `Engine.generate`: the same prompt, seed and weights give the same tokens on the same hardware.
   *
   * @param listener gets each response when it has ended
   * @throws GeneratorError `none` where no generator could be used for `noGeneratorSeconds`; the reason of `signal`
   */
  async generate(
    prompts: readonly Int32Array[],
    options: GenerateOptions,
    listener: Listener = () => {},
  ): Promise<VersionedResponse[]> {
    this.#o.signal.throwIfAborted();
    if (prompts.length === 0) return [];
    const responses = this.#queue.add(prompts, options, this.#o.eosIds, listener);
    this.#dealer.deal();
    return responses;
  }

  /** Ends running rows, and removes the weights' files. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#ticking);
    this.#queue.failAll(new GeneratorError("busy", "the run is over"));
    for (const generator of this.#generators.values()) generator.close();
    await rm(this.#o.directory, { recursive: true, force: true });
  }

  async #tick(): Promise<void> {
    const isDue = performance.now() - this.#resolvedAt >= RESOLVE_SECONDS * 1000;
    if (isDue) this.#resolving ??= this.#resolve().finally(() => (this.#resolving = undefined));
    // A look-up without an answer keeps no known generator waiting.
    if (this.#generators.size === 0)
      await Promise.race([this.#resolving, sleep(STATE_SECONDS * 1000, undefined, { ref: false })]);
    await Promise.all([...this.#generators.values()].map((generator) => this.#poll(generator)));
    if (this.#isClosed) return;
    this.#dealer.deal();
    this.#lookForGenerators();
    this.#o.onChange?.();
    this.#ticking = setTimeout(() => void this.#tick(), STATE_SECONDS * 1000);
  }

  async #resolve(): Promise<void> {
    this.#resolvedAt = performance.now();
    try {
      this.#tls = readTls(this.#o.tlsDirectory);
    } catch {
      // the files are being replaced: the certificates that were read before stay in use
    }
    const { found, unresolved, empty } = await resolveAll(this.#o.urls, this.#o.addressesOf);
    if (this.#isClosed) return;
    for (const [generator, why] of [...unresolved, ...empty])
      this.#o.log.info({ generator }, `no generator at ${generator}: ${why}`);
    this.#unresolved = unresolved;
    for (const [name, address] of found)
      if (!this.#generators.has(name)) this.#generators.set(name, new RemoteGenerator(address, () => this.#tls));
    for (const [name, generator] of this.#generators) {
      generator.isGone = !found.has(name);
      if (!generator.isGone || generator.rows > 0) continue;
      generator.close();
      this.#generators.delete(name);
    }
  }

  async #poll(generator: RemoteGenerator): Promise<void> {
    const lost = await generator.poll();
    if (lost !== undefined) this.#faults.report(generator, "lost", lost);
    const { state, holds, isBringing } = generator;
    if (generator.problem !== "" || !state || state.draining || isBringing || !this.#current) return;
    const has = state.digest !== null && { policyVersion: state.policyVersion!, digest: state.digest };
    if (holds && has && !isSame(has, holds)) {
      generator.holds = undefined;
      const confirmed = `the ${holds.policyVersion} that it confirmed`;
      this.#faults.report(generator, "oldVersion", `it has policy version ${has.policyVersion}, not ${confirmed}`);
    }
    if (has && isSame(has, this.#current) && !isSame(holds, has)) generator.has(this.#current);
    else if (!isSame(generator.holds, this.#current)) void this.#bring(generator);
  }

  async #bring(generator: RemoteGenerator): Promise<void> {
    const weights = this.#current;
    if (!weights || generator.problem !== "" || isSame(generator.holds, weights)) return;
    try {
      if (await generator.bring(weights)) this.#dealer.deal();
    } catch (cause) {
      if (weights !== this.#current || this.#isClosed || generator.problem !== "") return;
      if (!(cause instanceof GeneratorError)) return this.#faults.lose(generator, (cause as Error).message);
      generator.refuse((cause as Error).message);
      this.#o.log.warn({ generator: generator.name }, `${generator.name} is not used: ${generator.problem}`);
    }
  }

  /** Warns while rows wait without a generator, and gives up in the end. */
  #lookForGenerators(): void {
    const all = [...this.#generators.values()];
    const someWork = all.some(
      (each) =>
        each.rows > 0 || (each.isBringing && !each.hasRefused) || each.notUsedBecause(this.#current) === undefined,
    );
    if (!this.#queue.isOpen || someWork) {
      this.#alone = undefined;
      return;
    }
    const now = performance.now();
    this.#alone ??= { since: now, saidAt: now };
    const seconds = (now - this.#alone.since) / 1000;
    const reasons = all.map((each) => `${each.name}: ${each.notUsedBecause(this.#current)}`);
    const known =
      reasons.length > 0 ? reasons.join("; ") : `no address at ${this.#o.urls.map(({ host }) => host).join(", ")}`;
    const text = `no generator can be used for ${Math.round(seconds)} s, and ${this.#queue.waiting} rows wait: ${known}`;
    if (seconds >= this.#o.noGeneratorSeconds) {
      this.#queue.failAll(new GeneratorError("none", text));
    } else if (now - this.#alone.saidAt >= WARN_SECONDS * 1000) {
      this.#alone.saidAt = now;
      this.#o.log.warn(text);
      this.#o.notice(text);
    }
  }
}
