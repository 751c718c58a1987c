/** Log-probs of whole sequences, by an engine of one thread that trains nothing. */
import { type AdapterOptions, FROZEN } from "./engine.ts";
import { localEngine } from "./local.ts";

/** @returns of each sequence, log p(token i | tokens before) of its tokens 1..n-1 at temperature 1, float32 [n - 1] */
export async function logProbsOf(
  model: string,
  sequences: readonly ArrayLike<number>[],
  adapter: AdapterOptions = FROZEN,
): Promise<Float32Array[]> {
  const rowTokens = Math.max(...sequences.map(({ length }) => length));
  const engine = localEngine({ model, threads: 1, adapter, rowTokens });
  const batch = sequences.map((tokens) => {
    const [first, ...rest] = Array.from(tokens);
    return { prompt: Int32Array.of(first!), response: Int32Array.from(rest) };
  });
  const evaluated = await engine.evaluate(batch, { temperature: 1, values: false, reference: false });
  await engine.close();
  return evaluated.map(({ logProbs }) => logProbs);
}
