/** Fills the caches of prompts. */

import { type DeviceTensor, type Tensor, tensor } from "../graph/tensor.ts";
import type { Session } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import type { Prompt } from "./generate-cache.ts";
import { MASKED } from "./generate-graphs.ts";

/** Attention scores of a layer in one run, numbers. Prompts go together while they have no more, */
const SCORES = 1 << 23;
/** and one that has more goes by blocks of so many tokens that a block has no more, but of no less than this. */
const LEAST_BLOCK = 256;

/** All tokens of each prompt but its last, those of like length together so that little is padding. */
export async function prefill(
  session: Session,
  config: ModelConfig,
  weights: Record<string, Tensor | DeviceTensor>,
  prompts: readonly Prompt[],
): Promise<void> {
  const { layers, heads, keyValueHeads, headSize } = config;
  const waiting = prompts.filter(({ tokens }) => tokens.length > 1).sort((a, b) => a.tokens.length - b.tokens.length);
  while (waiting.length > 0) {
    const length = waiting.at(-1)!.tokens.length - 1;
    const columns = Math.floor(SCORES / (heads * length));
    const batch = waiting.splice(-Math.max(1, Math.floor(columns / length)));
    const block = columns < length ? Math.max(columns, LEAST_BLOCK) : length;
    let parts: readonly Float32Array[] = Array.from({ length: 2 * layers }, () => new Float32Array());
    for (let begin = 0; begin < length; begin += block) {
      const end = Math.min(length, begin + block);
      const past = [batch.length, keyValueHeads, begin, headSize];
      const results = await session.run({
        ...weights,
        ...columnFeeds(batch, length, begin, end),
        ...Object.fromEntries(
          parts.map((data, part) => [partName("pastKeys", "pastValues", part), tensor(data, past)]),
        ),
      });
      for (const { buffer } of parts) (buffer as ArrayBuffer).transfer(0); // garbage collection would take its time
      parts = parts.map((_, part) => results[partName("keys", "values", part)].data as Float32Array);
    }
    for (const [index, prompt] of batch.entries()) prompt.cache = { parts, index, length };
  }
}

const partName = (keys: string, values: string, part: number) => `${part % 2 === 0 ? keys : values}.${part >> 1}`;

/** What the graph is fed of columns `begin` to `end` of prompts that are padded on the left to `length`. */
function columnFeeds(batch: readonly Prompt[], length: number, begin: number, end: number): Record<string, Tensor> {
  const columns = end - begin;
  const tokens = new BigInt64Array(batch.length * columns);
  const positions = new BigInt64Array(batch.length * columns);
  const padding = new Float32Array(batch.length * end);
  for (const [index, prompt] of batch.entries()) {
    const offset = length - (prompt.tokens.length - 1);
    padding.fill(MASKED, index * end, index * end + Math.min(offset, end));
    for (let column = Math.max(begin, offset); column < end; column++) {
      tokens[index * columns + column - begin] = BigInt(prompt.tokens[column - offset]);
      positions[index * columns + column - begin] = BigInt(column - offset);
    }
  }
  const causal = new Float32Array(columns * end);
  for (let row = 0; row < columns; row++) causal.fill(MASKED, row * end + begin + row + 1, (row + 1) * end);
  return {
    tokens: tensor(tokens, [batch.length, columns]),
    positions: tensor(positions, [batch.length, columns]),
    padding: tensor(padding, [batch.length, 1, 1, end]),
    causal: tensor(causal, [columns, end]),
  };
}
