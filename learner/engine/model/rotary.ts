import type { ModelConfig } from "./config.ts";
import { ropeFrequencies } from "./rope.ts";

/** Cosines and sines of rotary positions, each float32 [positions, width]. */
interface RotaryTable {
  readonly positions: number;
  readonly cosines: Float32Array;
  readonly sines: Float32Array;
}

/**
 * Angles are rounded to float32 where transformers rounds them, so that far positions agree with it.
 *
 * @param width numbers of a position, at least headSize / 2: those beyond it are 0
 */
export function rotaryTable(
  { headSize, ropeTheta, rope }: ModelConfig,
  positions: number,
  width = headSize / 2,
): RotaryTable {
  const half = headSize / 2;
  const frequencies = ropeFrequencies(headSize, ropeTheta, rope);
  const scale = rope?.type === "yarn" ? rope.attentionFactor : 1;
  const cosines = new Float32Array(positions * width);
  const sines = new Float32Array(positions * width);
  for (let position = 0; position < positions; position++) {
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(position * frequencies[i]);
      cosines[position * width + i] = Math.fround(Math.cos(angle)) * scale;
      sines[position * width + i] = Math.fround(Math.sin(angle)) * scale;
    }
  }
  return { positions, cosines, sines };
}
