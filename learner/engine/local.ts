/** An engine in the caller's thread, which it blocks. It saves the memory of further threads, for commands that do nothing else. */
import type { Remote } from "./calls.ts";
import type { Engine, EngineOptions } from "./engine.ts";
import { EngineWorker } from "./engine-worker.ts";
import { MappedWeights } from "./model/mapped.ts";
import { Trainer } from "./trainer.ts";

/** @param options options of one worker: with an adapter, or on a GPU. @throws EngineError, ModelError for unusable options */
export const localEngine = (options: EngineOptions): Engine =>
  new Trainer(options, undefined, (own) => promising(new EngineWorker(own)));

/**
 * Returns for each sequence log p(token i | tokens before) of its tokens 1..n-1 at temperature 1, float32 [n - 1].
 *
 * @param model the folder of the engine's model
 * @throws ModelError `weights` for weights that are not finite, or `generation` if only logits are not finite
 */
export async function logProbsOf(
  engine: Engine,
  model: string,
  sequences: readonly Int32Array[],
): Promise<Float32Array[]> {
  const batch = sequences.map((tokens) => ({ prompt: tokens.subarray(0, 1), response: tokens.subarray(1) }));
  const evaluated = await engine.evaluate(batch, { temperature: 1, values: false, reference: false });
  if (evaluated.every(({ logProbs }) => logProbs.every(Number.isFinite)))
    return evaluated.map(({ logProbs }) => logProbs);
  throw new MappedWeights(model).notFinite();
}

/** Returns `target` with methods that return promises. */
function promising<T extends object>(target: T): Remote<T> {
  return new Proxy(target, {
    get:
      (methods, name) =>
      async (...parameters: unknown[]) =>
        (methods as Record<PropertyKey, (...parameters: unknown[]) => unknown>)[name](...parameters),
  }) as Remote<T>;
}
