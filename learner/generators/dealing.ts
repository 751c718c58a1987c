/** Deals rows to generators with free slots, and gives the rows of a generator that failed to another one. */
import type { LogProbCheck } from "./check.ts";
import { GeneratorError } from "./errors.ts";
import type { Faults } from "./faults.ts";
import type { RowAnswer } from "./protocol.ts";
import type { Row, RowQueue } from "./queue.ts";
import type { RemoteGenerator } from "./remote.ts";
import type { PublishedWeights } from "./weights.ts";

interface DealerOptions {
  /** Returns the present generators. */
  generators: () => Iterable<RemoteGenerator>;
  /** The weights that write rows; undefined: there are none yet. */
  weights: () => PublishedWeights | undefined;
  queue: RowQueue;
  check: LogProbCheck;
  faults: Faults;
  vocabSize: number;
  /** Whether generation has ended: no more rows are sent, and a generator that fails is not reported. */
  hasEnded: () => boolean;
}

export class Dealer {
  readonly #o: DealerOptions;

  constructor(options: DealerOptions) {
    this.#o = options;
  }

  /** Sends waiting rows to generators, each row to the generator with the most free slots that has not refused it. */
  deal(): void {
    const { queue, generators, hasEnded } = this.#o;
    const weights = this.#o.weights();
    if (!weights || hasEnded()) return;
    this.#failRefused();
    const usable = [...generators()].filter(
      (each) => each.notUsedBecause(weights) === undefined && this.#o.check.canTrust(each, weights),
    );
    const dealt = new Map<RemoteGenerator, Row[]>();
    for (;;) {
      const free = usable.filter(({ room }) => room > 0);
      if (free.length === 0) break;
      const row = queue.take(({ refusals }) => free.some(({ name }) => !refusals.has(name)));
      if (!row) break;
      const generator = free
        .filter(({ name }) => !row.refusals.has(name))
        .reduce((most, each) => (each.room > most.room ? each : most));
      generator.rows++;
      const rows = dealt.get(generator) ?? [];
      rows.push(row);
      dealt.set(generator, rows);
    }
    for (const [generator, rows] of dealt) void this.#send(generator, weights, rows);
  }

  /** Fails the calls with a row that every reachable generator has refused. */
  #failRefused(): void {
    const all = [...this.#o.generators()].filter(
      ({ problem, isGone, state }) => problem === "" && !isGone && !state?.draining,
    );
    for (;;) {
      const row = this.#o.queue.take(({ refusals }) => all.length > 0 && all.every(({ name }) => refusals.has(name)));
      if (!row) return;
      this.#o.queue.fail(row, [...row.refusals.values()].at(-1));
    }
  }

  async #send(generator: RemoteGenerator, weights: PublishedWeights, rows: Row[]): Promise<void> {
    const { check } = generator;
    const open = new Map(rows.map((row) => [row.request.id, row]));
    const onRow = (answer: RowAnswer) => {
      const row = open.get(answer.id);
      if (!row) throw new GeneratorError("failed", `it wrote row ${answer.id}, which nobody asked it for`);
      if (answer.policyVersion !== weights.policyVersion)
        throw new GeneratorError("version", `it wrote a row with policy version ${answer.policyVersion}`);
      const { maxTokens } = row.request;
      if (answer.tokens.length > maxTokens)
        throw new GeneratorError(
          "failed",
          `it wrote ${answer.tokens.length} tokens where at most ${maxTokens} were asked for`,
        );
      const outside = answer.tokens.find((token) => token >= this.#o.vocabSize);
      if (outside !== undefined)
        throw new GeneratorError("failed", `it wrote token ${outside}, which is not in the vocabulary`);
      open.delete(answer.id);
      generator.rows--;
      this.deal();
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

  /** Returns the rows of a failed generator to the queue. The generator gets no rows until it answers again. */
  #failed(generator: RemoteGenerator, cause: Error, rows: Row[]): void {
    const { faults, hasEnded } = this.#o;
    if (hasEnded()) return;
    const code = cause instanceof GeneratorError ? cause.code : "failed";
    if (code === "version") {
      generator.holds = undefined;
      faults.report(generator, "oldVersion", cause.message);
    } else if (code === "busy") {
      generator.drains();
    } else if (code === "request") {
      const refused = new GeneratorError("request", `${generator.name} refuses a row: ${cause.message}`, { cause });
      for (const row of rows) row.refusals.set(generator.name, refused);
    } else if (generator.problem === "") {
      faults.lose(generator, cause.message);
    }
    this.#again(rows);
  }

  #again(rows: Row[]): void {
    this.#o.faults.counts.movedRows += this.#o.queue.putBack(rows);
    this.deal();
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
      if (!(await this.#o.check.passes(generator, weights, check, row, response))) return this.#again([row]);
    } catch (cause) {
      return this.#o.queue.fail(row, cause);
    }
    this.#o.queue.finish(row, response);
  }
}
