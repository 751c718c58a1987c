/** One part in one reconcile: its look, its facts and its result. */
import { type Look, lookOf, settle } from "./context.ts";
import type { RunMemory } from "./memory.ts";
import type { AnyPart, Done, PartResult, Report, Stuck, Sum } from "./part.ts";
import type { Warning } from "./parts/learner/learner-state.ts";
import type { Finding } from "./status/conditions.ts";
import { tryStep } from "./steps.ts";

/** Time until the next try after a refusal that only a person can resolve. */
const REFUSED_SECONDS = 15;

export class Turn {
  readonly part: AnyPart;
  readonly #look: Look<object>;
  #facts: unknown;
  #refused: Finding | undefined;
  /** Seconds until the next reconcile, for each reason. */
  readonly again: number[] = [];

  constructor(part: AnyPart, look: Look<RunMemory>) {
    this.part = part;
    this.#look = lookOf(look, part);
  }

  observe(): void {
    const { facts, ...result } = this.part.observe?.(this.#look) ?? { facts: undefined };
    this.#facts = facts;
    this.#take(result);
  }

  /** @returns whether a run that is being deleted must stay */
  leave(): boolean {
    const result = this.part.leave?.(this.#look) ?? {};
    this.#take(result);
    return result.againSeconds !== undefined;
  }

  owes(): boolean {
    return this.part.owes?.(this.#look, this.#facts) ?? false;
  }

  expire(): void {
    this.part.expire?.(this.#look, this.#facts);
  }

  /** Reconciles the part and adds to `done`. `error`: an error of a child that a retry may resolve. */
  async reconcile(done: Done & Sum): Promise<Pick<PartResult<object>, "stop" | "error">> {
    const { part } = this;
    const { run } = this.#look.observed;
    const work = async (): Promise<PartResult<object>> => (await part.reconcile?.(this.#look, this.#facts, done)) ?? {};
    const result: PartResult<object> = await (part.gives ? work() : tryStep(run, work));
    const { given, failed, refused, other, error, stop } = result;
    this.#take(result);
    this.#refused = refused;
    if (refused ?? other) this.again.push(REFUSED_SECONDS);
    if (error !== undefined && !part.isChild) throw error;
    Object.assign(done, given);
    if (part.isChild) {
      done.failed ||= failed ?? false;
      done.blocked ??= refused;
      done.other ??= other;
    }
    return { error, ...(stop && { stop }) };
  }

  stuck(): Stuck {
    return this.part.stuck?.(this.#look, this.#facts) ?? { subject: undefined, waiting: false };
  }

  report(done: Done & Sum, warning: Warning | undefined): Report {
    const report = this.part.report?.(this.#look, this.#facts, done, { refused: this.#refused, warning }) ?? {};
    const renewals = (report.certificates ?? []).map(({ renewAtMs }) => (renewAtMs - this.#look.nowMs) / 1000);
    // What was due in this reconcile and not renewed has its reason: the run has ended, or may not be written.
    this.again.push(
      ...renewals.filter((seconds) => seconds >= 0),
      ...(report.againSeconds === undefined ? [] : [report.againSeconds]),
    );
    return report;
  }

  #take({ error: _, ...result }: PartResult<object>): void {
    settle(this.#look, result);
    if (result.againSeconds !== undefined) this.again.push(result.againSeconds);
  }
}
