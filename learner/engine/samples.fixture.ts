/** Made-up batches for tests of the engine. */

import type { PolicySample, ValueSample } from "./engine.ts";
import { uniforms } from "./model/random.ts";

/**
 * Returns prompts of 1 to 24 tokens, about half of them equal to the previous one, and responses of 1 to 12, with numbers of the size that
 * training has.
 */
export function randomSamples(vocabSize: number, count: number, seed = 1): (PolicySample & ValueSample)[] {
  const next = uniforms(seed, "samples");
  const tokens = (length: number) => Int32Array.from({ length }, () => Math.floor(next() * vocabSize));
  const prompt = () => tokens(1 + Math.floor(next() * 24));
  let last = prompt();
  return Array.from({ length: count }, () => {
    if (next() < 0.5) last = prompt();
    const response = tokens(1 + Math.floor(next() * 12));
    const numbers = (low: number, high: number) => Float32Array.from(response, () => low + (high - low) * next());
    return {
      ...{ prompt: last, response, proximalLogProbs: numbers(-4, -2) },
      ...{ advantages: numbers(-1, 1), importance: numbers(0, 2), referenceLogProbs: numbers(-4, -2) },
      ...{ weight: 2 * next(), oldValues: numbers(-1, 1), returns: numbers(-1, 1) },
    };
  });
}
