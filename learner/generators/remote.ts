/** One generator as the learner sees it: its state, the weights that it has, and the rows that it generates. */
import type { TlsBuffers } from "../../proto/tls-folder.ts";
import type { Address } from "./addresses.ts";
import { GeneratorClient } from "./client.ts";
import { GeneratorError } from "./errors.ts";
import { type GeneratorState, isSame, type RowAnswer, type RowRequest, type WeightsName } from "./protocol.ts";
import type { PublishedWeights } from "./weights.ts";

/** Rows of each generator and policy version whose log-probs are compared with the learner's. */
const CHECKED_ROWS = 2;
/** Rows beyond its slots that wait at a generator, as a share of them: a slot that becomes free has its next row at once. */
const WAITING_SHARE = 1 / 8;
/** Longest time for a generator to load weights. It first ends its running rows. */
const WEIGHTS_SECONDS = 900;
/** Seconds until weights are sent again to a generator that refused them. */
const REFUSED_SECONDS = 30;
/** Polls in a row without an answer, after which its rows go to another generator. */
const LOST_POLLS = 3;

export class RemoteGenerator {
  readonly name: string;
  readonly client: GeneratorClient;
  /** Its newest reported state. */
  state: GeneratorState | undefined;
  /** The newest weights that it confirmed. */
  holds: WeightsName | undefined;
  /** Digest of weights with which its log-probs were not the learner's. */
  mistrusted: string | undefined;
  /** Whether its log-probs have equalled the learner's before. */
  proven = false;
  /** Number of rows still to be compared with the generator's present weights, and the result so far. */
  check = { left: CHECKED_ROWS, sameLogProbs: Promise.resolve(true) };
  /** Number of sent rows without a response. */
  rows = 0;
  /** Why it cannot be used, while it cannot be reached or takes no weights. */
  problem = "it has not answered yet";
  /** Whether its name no longer resolves to its address. */
  isGone = false;
  #polls = 0;
  /** Whether it refused weights and has loaded none since. Sending them again is no progress. */
  hasRefused = false;
  #refusedUntil = 0;
  #bringing: { weights: PublishedWeights; stop: AbortController } | undefined;
  /** Ends the open requests. */
  #open = new AbortController();

  constructor(address: Address, tls: () => TlsBuffers) {
    this.name = address.url.host;
    this.client = new GeneratorClient(address, tls);
  }

  get isBringing(): boolean {
    return this.#bringing !== undefined;
  }

  /** Returns why it gets no rows for these weights; undefined if it gets rows. */
  notUsedBecause(current: WeightsName | undefined): string | undefined {
    if (this.problem !== "") return this.problem;
    if (this.isGone) return "its name does not lead to it any more";
    if (this.state?.draining) return "it is draining";
    if (current && this.mistrusted === current.digest) return "its log-probs are not the learner's";
    if (this.#bringing) return `it loads policy version ${this.#bringing.weights.policyVersion}`;
    if (current && !isSame(this.holds, current)) return "it has old weights";
    return undefined;
  }

  /** Number of rows that it can take now. */
  get room(): number {
    const { slots = 0 } = this.state ?? {};
    return Math.max(0, slots + Math.ceil(slots * WAITING_SHARE) - this.rows);
  }

  /** Asks for its state. @returns the reason when it becomes lost, else undefined */
  async poll(): Promise<string | undefined> {
    try {
      this.state = await this.client.state();
      this.#polls = 0;
      if (performance.now() >= this.#refusedUntil) this.problem = "";
    } catch (cause) {
      const isNews = this.problem === "" && !this.state?.draining;
      if (++this.#polls < LOST_POLLS && isNews) return undefined;
      this.lose((cause as Error).message);
      return isNews ? this.problem : undefined;
    }
    return undefined;
  }

  /** Records that it takes no more rows. */
  drains(): void {
    if (this.state) this.state = { ...this.state, draining: true };
  }

  /** Records that it refused weights. */
  refuse(why: string): void {
    this.problem = `it takes no weights: ${why}`;
    this.hasRefused = true;
    this.holds = undefined;
    this.#refusedUntil = performance.now() + REFUSED_SECONDS * 1000;
  }

  /** Gives it no rows until it answers again. Its present rows fail. */
  lose(why: string): void {
    this.problem = `it does not answer: ${why}`;
    this.holds = undefined;
    this.#refusedUntil = 0;
    this.#open.abort(new GeneratorError("failed", this.problem));
    this.#open = new AbortController();
  }

  /** Sends weights, unless it has them or they are being sent. @returns whether it has them now */
  async bring(weights: PublishedWeights): Promise<boolean> {
    if (this.#bringing?.weights === weights) return false;
    this.#bringing?.stop.abort(new GeneratorError("busy", "newer weights are there"));
    const mine = { weights, stop: new AbortController() };
    this.#bringing = mine;
    try {
      const end = AbortSignal.any([mine.stop.signal, this.#open.signal, AbortSignal.timeout(WEIGHTS_SECONDS * 1000)]);
      await this.client.bring(weights, end);
      if (this.#bringing !== mine) return false;
      this.has(weights);
      return true;
    } finally {
      if (this.#bringing === mine) this.#bringing = undefined;
    }
  }

  /** Records that it samples from these weights from now on. */
  has({ policyVersion, digest }: WeightsName): void {
    this.holds = { policyVersion, digest };
    this.check = { left: CHECKED_ROWS, sameLogProbs: Promise.resolve(true) };
    this.problem = "";
    this.hasRefused = false;
  }

  /** Generates rows. @throws the error that ended the request before all rows had responses */
  async generate(weights: WeightsName, rows: RowRequest[], onRow: (row: RowAnswer) => void): Promise<void> {
    const { policyVersion, digest } = weights;
    await this.client.generate({ policyVersion, digest, rows }, this.#open.signal, onRow);
  }

  close(): void {
    this.#bringing?.stop.abort();
    this.#open.abort();
    this.client.close();
  }
}
