/** Checks whether a generator's log-probs equal the learner's. */
import type { Engine } from "../engine/index.ts";
import type { Faults } from "./faults.ts";
import type { GeneratorState, WeightsName } from "./protocol.ts";
import type { Row, VersionedResponse } from "./queue.ts";
import type { RemoteGenerator } from "./remote.ts";

/**
 * Largest mean over a row's tokens of |log-prob of the generator - log-prob of the learner|, nats. `cpu`: both compute in float32. `cuda`: one of
 * them rounds to half precision. Other weights, another temperature or another model exceed both by far (README.md).
 */
const MEAN_DIFFERENCE_LIMITS = { cpu: 0.001, cuda: 0.05 };

interface LogProbCheckOptions {
  engine: Pick<Engine, "evaluate">;
  /** The learner's device. */
  device: GeneratorState["device"];
  /** Whether the learner has the weights of this policy version now. */
  isCurrent: (policyVersion: number) => boolean;
  faults: Faults;
}

export class LogProbCheck {
  readonly #o: LogProbCheckOptions;

  constructor(options: LogProbCheckOptions) {
    this.#o = options;
  }

  /** Returns whether a generator may get rows. A generator whose log-probs were never compared waits until the learner has its weights again. */
  canTrust({ proven }: RemoteGenerator, { policyVersion }: WeightsName): boolean {
    return proven || this.#o.isCurrent(policyVersion);
  }

  /**
   * Returns whether a generator's rows with these weights may be used. Compares its first rows with the learner's log-probs; later rows wait
   * for these comparisons.
   *
   * @param check the generator's `check` when the row was sent
   */
  async passes(
    generator: RemoteGenerator,
    weights: WeightsName,
    check: RemoteGenerator["check"],
    row: Row,
    response: VersionedResponse,
  ): Promise<boolean> {
    if (check.left > 0) {
      check.left--;
      const before = check.sameLogProbs;
      check.sameLogProbs = before.then(
        async (same) => same && (await this.#isLearners(generator, weights, row, response)),
      );
    }
    return check.sameLogProbs;
  }

  /** Returns whether a row's log-probs equal the learner's. A learner with newer weights cannot compare; then the earlier result counts. */
  async #isLearners(
    generator: RemoteGenerator,
    { policyVersion, digest }: WeightsName,
    { prompt, call }: Row,
    response: VersionedResponse,
  ): Promise<boolean> {
    const { isCurrent, engine, device, faults } = this.#o;
    const { temperature } = call.options;
    if (temperature === 0) return true; // log-probs at temperature 0 are those at 1, which training does not compute
    if (!isCurrent(policyVersion)) {
      faults.counts.uncheckedRows++;
      return generator.proven;
    }
    const difference = await meanDifference(engine, { prompt, ...response }, temperature);
    const isGpu = [device, generator.state?.device].includes("cuda");
    const limit = MEAN_DIFFERENCE_LIMITS[isGpu ? "cuda" : "cpu"];
    if (difference <= limit) {
      generator.proven = true;
      return true;
    }
    if (generator.mistrusted === digest) return false;
    generator.mistrusted = digest;
    generator.proven = false;
    const found = `its log-probs differ from the learner's by ${difference.toPrecision(3)} nats a token, more than ${limit}`;
    faults.report(generator, "logProbs", `${found}: it has other weights, another model or another temperature`);
    return false;
  }
}

/** Returns the mean absolute difference between a row's log-probs and the learner's current policy's, nats a token. */
async function meanDifference(
  engine: Pick<Engine, "evaluate">,
  row: { prompt: Int32Array; response: Int32Array; logProbs: Float32Array },
  temperature: number,
): Promise<number> {
  const [own] = await engine.evaluate([row], { temperature, values: false, reference: false });
  const differences = own!.logProbs.map((logProb, t) => Math.abs(logProb - row.logProbs[t]!));
  return differences.reduce((sum, difference) => sum + difference, 0) / differences.length;
}
