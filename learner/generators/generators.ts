/**
 * The generators of a run as one writer of responses: brings them the policy's weights by version, deals rows to whoever has free slots, gives
 * the rows of a generator that is lost to another one, and uses none whose weights or log-probs are not the learner's.
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { readTls, type TlsBuffers } from "../../proto/tls-folder.ts";
import type { Engine, Response } from "../engine/index.ts";
import { type Address, addressesOf } from "./addresses.ts";
import { differenceLimit, meanDifference } from "./check.ts";
import { GeneratorError } from "./errors.ts";
import { type GeneratorState, isSame, type RowAnswer, type RowRequest } from "./protocol.ts";
import { RemoteGenerator } from "./remote.ts";
import { type PublishedWeights, weightsIn } from "./weights.ts";

/** How often each generator is asked for its state, and how long one that failed gets nothing. */
const STATE_SECONDS = 2;
/** How often names are resolved again and certificates are read again. */
const RESOLVE_SECONDS = 10;
/** Without a generator for so long the log and the terminal say so, and say it again. */
const WARN_SECONDS = 30;
/** A row that is refused so often ends the run: every generator would refuse it. */
const MOST_REFUSALS = 3;

/** Reasons why a generator was not used; counted since the last line of metrics. */
export const FAULTS = ["lost", "oldVersion", "logProbs"] as const;
export type Fault = (typeof FAULTS)[number];

export interface GenerationCounts {
  faults: Record<Fault, number>;
  /** Rows that another generator wrote than the one that they were sent to first. */
  movedRows: number;
  /** Rows whose generator could not be compared with the learner, because the learner had newer weights by then. */
  uncheckedRows: number;
}

export const noCounts = (): GenerationCounts => ({
  ...{ faults: { lost: 0, oldVersion: 0, logProbs: 0 }, movedRows: 0, uncheckedRows: 0 },
});

/** A response and the policy version that wrote it. */
export interface VersionedResponse extends Response {
  policyVersion: number;
}

export type GenerateOptions = Pick<
  Parameters<Engine["generate"]>[1],
  "seeds" | "temperature" | "topP" | "maxNewTokens"
>;

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
  /** Whether the learner's weights are those of this policy version now. */
  isCurrent: (policyVersion: number) => boolean;
  /** The run ends with an error when rows wait and no generator could be used for so long. */
  noGeneratorSeconds: number;
  log: Logger;
  /** Tells a person. */
  tell: (text: string) => void;
  /** Called when `status` has changed. */
  onChange?: () => void;
  /** Ends all rows at once, with its reason. */
  signal: AbortSignal;
}

interface Call {
  options: GenerateOptions;
  listener: (index: number, part: VersionedResponse & { ended: boolean }) => void;
  responses: VersionedResponse[];
  left: number;
  resolve: (responses: VersionedResponse[]) => void;
  reject: (cause: unknown) => void;
}

interface Row {
  call: Call;
  index: number;
  prompt: Int32Array;
  request: RowRequest;
  refusals: number;
}

export class Generators {
  readonly #o: GeneratorsOptions;
  readonly #generators = new Map<string, RemoteGenerator>();
  readonly #waiting: Row[] = [];
  readonly #calls = new Set<Call>();
  #tls: TlsBuffers;
  #current: PublishedWeights | undefined;
  #counts = noCounts();
  #nextId = 0;
  #resolvedAt = Number.NEGATIVE_INFINITY;
  /** Since when rows wait without a generator, and when that was said last: milliseconds of `performance.now`. */
  #alone: { since: number; saidAt: number } | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @throws ChannelError `tlsFile` */
  constructor(options: GeneratorsOptions) {
    this.#o = options;
    this.#tls = readTls(options.tlsDirectory);
    const stop = () => this.#failAll(options.signal.reason);
    options.signal.addEventListener("abort", stop, { once: true });
    void this.#tick();
  }

  /** Rows that the generators which answer can generate side by side. */
  get slots(): number {
    const answering = [...this.#generators.values()].filter(({ problem, state }) => problem === "" && !state?.draining);
    return answering.reduce((sum, { state }) => sum + (state?.slots ?? 0), 0);
  }

  /** For LearnerStatus: rows that wait in the learner, and each generator. */
  get status() {
    const generators = [...this.#generators.values()].map((generator) => {
      const notUsedBecause = generator.notUsedBecause(this.#current) ?? "";
      const policyVersion = (generator.holds ?? generator.state)?.policyVersion ?? undefined;
      return {
        ...{ address: generator.name, ready: notUsedBecause === "", running: generator.rows, notUsedBecause },
        ...(policyVersion !== undefined && { policyVersion }),
      };
    });
    return { waitingPrompts: this.#waiting.length, generators };
  }

  /** Returns what happened since the last call. */
  takeCounts(): GenerationCounts {
    const counts = this.#counts;
    this.#counts = noCounts();
    return counts;
  }

  /** Makes the learner's current weights those that further rows are written with. The generators get them in the background. */
  async publish(policyVersion: number): Promise<void> {
    if (this.#current?.policyVersion === policyVersion) return;
    const { directory, engine, log } = this.#o;
    const folder = join(directory, String(policyVersion));
    const before = this.#current;
    // what a learner that was killed has left would lie on the volume until the run ends
    await rm(before ? folder : directory, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await engine.savePolicy(folder);
    this.#current = await weightsIn(folder, policyVersion);
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
    listener: Call["listener"] = () => {},
  ): Promise<VersionedResponse[]> {
    this.#o.signal.throwIfAborted();
    if (prompts.length === 0) return [];
    const { promise, resolve, reject } = Promise.withResolvers<VersionedResponse[]>();
    const call: Call = { options, listener, responses: [], left: prompts.length, resolve, reject };
    this.#calls.add(call);
    const { temperature, topP, maxNewTokens: maxTokens, seeds } = options;
    const stopTokens = [...this.#o.eosIds];
    for (const [index, prompt] of prompts.entries()) {
      const sampling = { seed: seeds[index]!, temperature, topP, maxTokens, stopTokens };
      const request = { id: String(this.#nextId++), prompt: Array.from(prompt), ...sampling };
      this.#waiting.push({ call, index, prompt, request, refusals: 0 });
    }
    this.#deal();
    return promise;
  }

  /** Ends what runs, and removes the weights' files. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#ticking);
    this.#failAll(new GeneratorError("busy", "the run is over"));
    for (const generator of this.#generators.values()) generator.close();
    await rm(this.#o.directory, { recursive: true, force: true });
  }

  async #tick(): Promise<void> {
    if (performance.now() - this.#resolvedAt >= RESOLVE_SECONDS * 1000) await this.#resolve();
    await Promise.all([...this.#generators.values()].map((generator) => this.#poll(generator)));
    if (this.#isClosed) return;
    this.#deal();
    this.#lookForGenerators();
    this.#o.onChange?.();
    this.#ticking = setTimeout(() => void this.#tick(), STATE_SECONDS * 1000);
  }

  async #resolve(): Promise<void> {
    this.#resolvedAt = performance.now();
    try {
      this.#tls = readTls(this.#o.tlsDirectory);
    } catch {
      // in the middle of a change: what was read before goes on to be used
    }
    const found = new Map<string, Address>();
    for (const url of this.#o.urls) {
      try {
        for (const address of await addressesOf(url)) found.set(address.url.host, address);
      } catch (cause) {
        // as long as no pod is there, a headless Service has no address
        this.#o.log.info({ generator: url.host }, `no generator at ${url.host}: ${(cause as Error).message}`);
      }
    }
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
    if (lost !== undefined) this.#fault(generator, "lost", lost);
    const { state, holds, isBringing } = generator;
    if (generator.problem !== "" || !state || state.draining || isBringing || !this.#current) return;
    const has = state.digest !== null && { policyVersion: state.policyVersion!, digest: state.digest };
    if (holds && has && !isSame(has, holds)) {
      generator.holds = undefined;
      const confirmed = `the ${holds.policyVersion} that it confirmed`;
      this.#fault(generator, "oldVersion", `it has policy version ${has.policyVersion}, not ${confirmed}`);
    }
    if (has && isSame(has, this.#current) && !isSame(holds, has)) generator.has(this.#current);
    else if (!isSame(generator.holds, this.#current)) void this.#bring(generator);
  }

  async #bring(generator: RemoteGenerator): Promise<void> {
    const weights = this.#current;
    if (!weights || generator.problem !== "" || isSame(generator.holds, weights)) return;
    try {
      if (await generator.bring(weights)) this.#deal();
    } catch (cause) {
      if (weights !== this.#current || this.#isClosed || generator.problem !== "") return;
      if (!(cause instanceof GeneratorError)) return this.#lose(generator, (cause as Error).message);
      generator.refuse((cause as Error).message);
      this.#o.log.warn({ generator: generator.name }, `${generator.name} is not used: ${generator.problem}`);
    }
  }

  /** Sends rows that wait to generators with room, each time to the one with most of it. */
  #deal(): void {
    const weights = this.#current;
    if (!weights || this.#isClosed) return;
    const usable = [...this.#generators.values()].filter((each) => each.notUsedBecause(weights) === undefined);
    const dealt = new Map<RemoteGenerator, Row[]>();
    while (this.#waiting.length > 0) {
      const generator = usable.reduce<RemoteGenerator | undefined>(
        (most, each) => (each.room > (most?.room ?? 0) ? each : most),
        undefined,
      );
      if (!generator) break;
      generator.rows++;
      const rows = dealt.get(generator) ?? [];
      rows.push(this.#waiting.shift()!);
      dealt.set(generator, rows);
    }
    for (const [generator, rows] of dealt) void this.#send(generator, weights, rows);
  }

  async #send(generator: RemoteGenerator, weights: PublishedWeights, rows: Row[]): Promise<void> {
    const { check } = generator;
    const open = new Map(rows.map((row) => [row.request.id, row]));
    const onRow = (answer: RowAnswer) => {
      const row = open.get(answer.id);
      if (!row) throw new GeneratorError("request", `it wrote row ${answer.id}, which nobody asked it for`);
      if (answer.policyVersion !== weights.policyVersion)
        throw new GeneratorError("version", `it wrote a row with policy version ${answer.policyVersion}`);
      const outside = answer.tokens.find((token) => token >= this.#o.vocabSize);
      if (outside !== undefined)
        throw new GeneratorError("failed", `it wrote token ${outside}, which is not in the vocabulary`);
      open.delete(answer.id);
      generator.rows--;
      this.#deal();
      void this.#arrive(generator, weights, check, row, answer);
    };
    try {
      await generator.generate(
        weights,
        rows.map(({ request }) => request),
        onRow,
      );
      if (open.size > 0) throw new GeneratorError("failed", `it left ${open.size} rows out`);
    } catch (cause) {
      generator.rows -= open.size;
      this.#failed(generator, cause as Error, [...open.values()]);
    }
  }

  /** Its rows go elsewhere, and it gets none until it has answered again. */
  #failed(generator: RemoteGenerator, cause: Error, rows: Row[]): void {
    if (this.#isClosed || this.#o.signal.aborted) return;
    const code = cause instanceof GeneratorError ? cause.code : "failed";
    if (code === "version") {
      generator.holds = undefined;
      this.#fault(generator, "oldVersion", cause.message);
    } else if (code === "busy") {
      generator.drains();
    } else if (code === "request") {
      const refused = new GeneratorError("request", `${generator.name} refuses a row: ${cause.message}`, { cause });
      for (const row of rows) if (++row.refusals >= MOST_REFUSALS) this.#end(row.call, refused);
    } else if (generator.problem === "") {
      this.#lose(generator, cause.message);
    }
    this.#again(rows);
  }

  #lose(generator: RemoteGenerator, why: string): void {
    generator.lose(why);
    this.#fault(generator, "lost", why);
  }

  /** Rows that are written anew, before those that have never been sent. */
  #again(rows: Row[]): void {
    const open = rows.filter(({ call }) => this.#calls.has(call));
    this.#counts.movedRows += open.length;
    this.#waiting.unshift(...open);
    this.#deal();
  }

  /** Takes a row once the first rows of its generator with these weights have the learner's log-probs. */
  async #arrive(
    generator: RemoteGenerator,
    weights: PublishedWeights,
    check: RemoteGenerator["check"],
    row: Row,
    answer: RowAnswer,
  ): Promise<void> {
    const response = {
      response: Int32Array.from(answer.tokens),
      logProbs: Float32Array.from(answer.logProbs),
      finished: answer.finish === "stop",
      policyVersion: answer.policyVersion,
    };
    try {
      if (check.left > 0) {
        check.left--;
        const before = check.sameLogProbs;
        check.sameLogProbs = before.then(
          async (same) => same && (await this.#isLearners(generator, weights, row, response)),
        );
      }
      if (!(await check.sameLogProbs)) return this.#again([row]);
    } catch (cause) {
      return this.#end(row.call, cause);
    }
    const { call, index } = row;
    if (!this.#calls.has(call)) return;
    call.responses[index] = response;
    call.left--;
    call.listener(index, { ...response, ended: true });
    if (call.left > 0) return;
    this.#calls.delete(call);
    call.resolve(call.responses);
  }

  /** Whether a row's log-probs are the learner's own. A learner with newer weights cannot tell: then what it found before counts. */
  async #isLearners(
    generator: RemoteGenerator,
    { policyVersion, digest }: PublishedWeights,
    { prompt, call }: Row,
    response: VersionedResponse,
  ): Promise<boolean> {
    const { isCurrent, engine, device } = this.#o;
    const { temperature } = call.options;
    if (temperature === 0) return true; // log-probs at temperature 0 are those at 1, which training does not compute
    if (!isCurrent(policyVersion)) {
      this.#counts.uncheckedRows++;
      return generator.proven;
    }
    const difference = await meanDifference(engine, { prompt, ...response }, temperature);
    const limit = differenceLimit([device, generator.state?.device ?? "cpu"]);
    if (difference <= limit) {
      generator.proven = true;
      return true;
    }
    if (generator.mistrusted === digest) return false;
    generator.mistrusted = digest;
    generator.proven = false;
    const found = `its log-probs differ from the learner's by ${difference.toPrecision(3)} nats a token, more than ${limit}`;
    this.#fault(generator, "logProbs", `${found}: it has other weights, another model or another temperature`);
    return false;
  }

  #fault(generator: RemoteGenerator, fault: Fault, why: string): void {
    this.#counts.faults[fault]++;
    this.#o.log.warn({ generator: generator.name, fault }, `${generator.name} is not used: ${why}`);
    this.#o.onChange?.();
  }

  /** Says for how long rows have waited without a generator, and gives up in the end. */
  #lookForGenerators(): void {
    const all = [...this.#generators.values()];
    const someWork = all.some(
      (each) => each.rows > 0 || each.isBringing || each.notUsedBecause(this.#current) === undefined,
    );
    if (this.#calls.size === 0 || someWork) {
      this.#alone = undefined;
      return;
    }
    const now = performance.now();
    this.#alone ??= { since: now, saidAt: now };
    const seconds = (now - this.#alone.since) / 1000;
    const reasons = all.map((each) => `${each.name}: ${each.notUsedBecause(this.#current)}`);
    const known =
      reasons.length > 0 ? reasons.join("; ") : `no address at ${this.#o.urls.map(({ host }) => host).join(", ")}`;
    const text = `no generator can be used for ${Math.round(seconds)} s, and ${this.#waiting.length} rows wait: ${known}`;
    if (seconds >= this.#o.noGeneratorSeconds) {
      this.#failAll(new GeneratorError("none", text));
    } else if (now - this.#alone.saidAt >= WARN_SECONDS * 1000) {
      this.#alone.saidAt = now;
      this.#o.log.warn(text);
      this.#o.tell(text);
    }
  }

  #failAll(cause: unknown): void {
    for (const call of [...this.#calls]) this.#end(call, cause);
  }

  #end(call: Call, cause: unknown): void {
    if (!this.#calls.delete(call)) return;
    const others = this.#waiting.filter((row) => row.call !== call);
    this.#waiting.splice(0, this.#waiting.length, ...others);
    call.reject(cause);
  }
}
