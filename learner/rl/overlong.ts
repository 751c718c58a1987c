import type { Algorithm } from "../../crds/trainingrun.ts";

/**
 * What `algorithm.overlongPenalty` takes from a sample's reward: DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13) times
 * `factor`. It grows linearly over the last `bufferTokens` below `maxResponseTokens`, from 0 to `factor`, and a response that was
 * cut has all of it. 0 where the field is absent.
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
