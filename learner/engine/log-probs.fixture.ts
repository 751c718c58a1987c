/** Log-probs of whole sequences, by an engine of one thread that does not train. */
import { type AdapterOptions, FROZEN } from "./engine.ts";
import { logProbsOf as evaluated, localEngine } from "./local.ts";

/** @returns the result of `logProbsOf` in local.ts for each sequence */
export async function logProbsOf(
  model: string,
  sequences: readonly ArrayLike<number>[],
  adapter: AdapterOptions = FROZEN,
): Promise<Float32Array[]> {
  const rowTokens = Math.max(...sequences.map(({ length }) => length));
  const engine = localEngine({ model, threads: 1, adapter, rowTokens });
  try {
    return await evaluated(
      engine,
      model,
      sequences.map((tokens) => Int32Array.from(tokens)),
    );
  } finally {
    await engine.close();
  }
}
