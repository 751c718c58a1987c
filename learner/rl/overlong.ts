import type { Algorithm } from "../../crds/trainingrun.ts";

/**
 * Returns the amount that `algorithm.overlongPenalty` subtracts from a sample's reward: DAPO's soft overlong punishment (arXiv 2503.14476,
 * eq. 13) times `factor`. It grows linearly from 0 to `factor` over the last `bufferTokens` below `maxResponseTokens`; a response that was
 * cut gets all of it. 0 if the field is absent.
 */
export function overlongPenalty(
  { response, truncated }: { response: { readonly length: number }; truncated?: boolean | undefined },
  { overlongPenalty: penalty }: Pick<Algorithm, "overlongPenalty">,
  maxResponseTokens: number,
): number {
  if (penalty === undefined) return 0;
  const { bufferTokens, factor } = penalty;
  if (truncated) return factor;
  const over = response.length - (maxResponseTokens - bufferTokens);
  return factor * Math.min(Math.max(over / bufferTokens, 0), 1);
}
