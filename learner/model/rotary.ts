import type { ModelConfig } from "./config.ts";

/** Cosines and sines of rotary positions, each float32 [positions, headSize / 2]. */
export interface RotaryTable {
  readonly positions: number;
  readonly cosines: Float32Array;
  readonly sines: Float32Array;
}

/** Angles are rounded to float32 where transformers rounds them, so that far positions agree with it. */
export function rotaryTable(config: ModelConfig, positions: number): RotaryTable {
  const half = config.headSize / 2;
  const frequencies = Float32Array.from({ length: half }, (_, i) => 1 / config.ropeTheta ** (i / half));
  const cosines = new Float32Array(positions * half);
  const sines = new Float32Array(positions * half);
  for (let position = 0; position < positions; position++) {
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(position * frequencies[i]);
      cosines[position * half + i] = Math.cos(angle);
      sines[position * half + i] = Math.sin(angle);
    }
  }
  return { positions, cosines, sines };
}
