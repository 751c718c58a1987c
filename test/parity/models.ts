/** Compares the engine's results for a folder with transformers' results. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { logProbsOf } from "../../learner/engine/log-probs.fixture.ts";
import { readModelFolder } from "../../learner/engine/model/folder.fixture.ts";
import { type GenerateOptions, Generator } from "../../learner/engine/model/generate.ts";
import { MappedWeights } from "../../learner/engine/model/mapped.ts";
import type { ParityCase } from "./cases.ts";
import { GREEDY_PROMPT, GREEDY_TOKENS, tokensOf, writeFolder } from "./folders.ts";

const TOLERANCE = 1e-4;

interface Reference {
  logProbs: number[][];
  greedy: number[];
  greedyLogProbs: number[];
  logits?: number[];
}

const REFERENCE: Record<string, Reference> = JSON.parse(
  fs.readFileSync(new URL("reference.json", import.meta.url), "utf8"),
);

/** Registers the tests of one folder. */
export function checkCase(parity: ParityCase): void {
  describe(parity.name, () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "longrun-parity-"));
    writeFolder(folder, parity);
    const mapped = new MappedWeights(folder);
    const generator = new Generator(mapped.config, { threads: 1 });
    after(async () => {
      await generator.release();
      fs.rmSync(folder, { recursive: true });
    });
    const reference = REFERENCE[parity.name];
    const prompt = tokensOf(parity, parity.lengths.length, GREEDY_PROMPT);
    const greedy = { seeds: [1], temperature: 0, topP: 1, maxNewTokens: GREEDY_TOKENS, eosIds: [] };

    it("gives transformers' log-probs", async () => {
      const sequences = parity.lengths.map((length, index) => tokensOf(parity, index, length));
      const logProbs = await logProbsOf(folder, sequences);
      for (const [index, expected] of reference.logProbs.entries()) assertClose(logProbs[index], expected);
    });

    for (const [from, weights] of [
      ["the files", () => ({ base: mapped })],
      ["weights in memory", () => readModelFolder(folder).weights],
    ] as const) {
      it(`writes transformers' greedy tokens with ${from}`, async () => {
        const [{ response, logProbs }] = await generator.generate(weights(), [prompt], greedy);
        assert.deepEqual([...response], reference.greedy);
        assertClose(logProbs, reference.greedyLogProbs);
      });
    }

    if (parity.sampled) {
      it("samples from transformers' distribution", async () => {
        for (const temperature of [1, 0.6]) {
          const probabilities = softmax(reference.logits!, temperature);
          const counts = await countTokens(generator, mapped, prompt, temperature, probabilities.length);
          assert.ok(chiSquare(counts, probabilities) < 3.5, `at ${temperature}: ${chiSquare(counts, probabilities)}`);
          const other = softmax(reference.logits!, temperature * 0.8);
          assert.ok(chiSquare(counts, other) > 5, "another temperature must be told apart");
        }
      });
    }
  });
}

function assertClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  assert.equal(actual.length, expected.length);
  let worst = 0;
  for (const [i, value] of expected.entries()) worst = Math.max(worst, Math.abs(actual[i] - value));
  assert.ok(worst <= TOLERANCE, `log-probs differ by up to ${worst}`);
}

const SAMPLES = 4000;

async function countTokens(
  generator: Generator,
  mapped: MappedWeights,
  prompt: Int32Array,
  temperature: number,
  vocabulary: number,
): Promise<number[]> {
  const rows = new Array<Int32Array>(SAMPLES).fill(prompt);
  const options: GenerateOptions = { seeds: [...rows.keys()], temperature, topP: 1, maxNewTokens: 1, eosIds: [] };
  const counts = new Array<number>(vocabulary).fill(0);
  for (const { response } of await generator.generate({ base: mapped }, rows, options)) counts[response[0]]++;
  return counts;
}

/** Returns Pearson's statistic in units of its standard deviation (its mean is n, its variance 2n); rare tokens are one cell. */
function chiSquare(counts: readonly number[], probabilities: readonly number[]): number {
  const rare: [expected: number, seen: number] = [0, 0];
  const cells = [rare];
  for (const [token, probability] of probabilities.entries()) {
    const expected = probability * SAMPLES;
    if (expected >= 8) cells.push([expected, counts[token]]);
    else {
      rare[0] += expected;
      rare[1] += counts[token];
    }
  }
  const used = cells.filter(([expected, seen]) => expected >= 1 || seen > 0);
  const statistic = used.reduce((sum, [expected, seen]) => sum + (seen - expected) ** 2 / (expected || 1e-9), 0);
  const freedom = used.length - 1;
  return (statistic - freedom) / Math.sqrt(2 * freedom);
}

function softmax(logits: readonly number[], temperature: number): number[] {
  const highest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp((logit - highest) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}
