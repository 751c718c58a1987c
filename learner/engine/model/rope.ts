/** Rotary positions as config.json describes them, and their frequencies. Source: transformers' modeling_rope_utils.py. */
import type { ConfigFile } from "./config-file.ts";

interface Scaling {
  readonly factor: number;
  readonly originalPositions: number;
}

/** Rotary positions stretched to more tokens than the model was first trained on. */
export type ScaledRope = Scaling &
  (
    | { readonly type: "linear" }
    | { readonly type: "llama3"; readonly lowFrequencyFactor: number; readonly highFrequencyFactor: number }
    | {
        readonly type: "yarn";
        /** cosines and sines are multiplied by it */
        readonly attentionFactor: number;
        readonly betaFast: number;
        readonly betaSlow: number;
        readonly truncate: boolean;
      }
  );

interface RopeConfig {
  readonly ropeTheta: number;
  /** left out: unscaled */
  readonly rope?: ScaledRope;
  /** number of positions: max_position_embeddings, or the number that the scaling stretches the original positions to */
  readonly maxPositions: number;
}

const SUPPORTED = ["default", "linear", "llama3", "yarn"];

/**
 * Reads `rope_scaling` (transformers 4, beside `rope_theta`) or `rope_parameters` (transformers 5). Like transformers it prefers
 * `rope_scaling` when both are given and it is not empty, and `rope_theta` inside to the one outside. @throws ModelError `config` naming the field
 */
export function parseRope(file: ConfigFile, positions: number): RopeConfig {
  const name = JSON.stringify(file.value("rope_scaling") ?? {}) === "{}" ? "rope_parameters" : "rope_scaling";
  const rope = file.object(name);
  const ropeTheta = (rope.present("rope_theta") ? rope : file).positive("rope_theta", 10000);
  const typeField = rope.present("rope_type") ? "rope_type" : "type";
  const type = (rope.value(typeField) ?? "default") as "default" | ScaledRope["type"];
  rope.allow("partial_rotary_factor", [1], "only 1 is supported");
  if (rope.present("full_attention")) rope.refuse("full_attention", "give one set of parameters for all layers");
  if (type === "default") return { ropeTheta, maxPositions: positions };
  if (!SUPPORTED.includes(type)) return rope.refuse(typeField, `supported are ${SUPPORTED.join(", ")}`);

  // transformers takes a number beside the scaling before the one in it
  const field = "original_max_position_embeddings";
  const original = (file.present(field) ? file : rope).count(field, positions);
  const factor = rope.positive("factor", type === "yarn" ? positions / original : undefined);
  const scaling: Scaling = { factor, originalPositions: original };
  const maxPositions = Math.max(positions, Math.floor(factor * original));
  switch (type) {
    case "linear":
      return { ropeTheta, rope: { type, ...scaling }, maxPositions };
    case "llama3": {
      const lowFrequencyFactor = rope.positive("low_freq_factor");
      const highFrequencyFactor = rope.positive("high_freq_factor");
      if (highFrequencyFactor <= lowFrequencyFactor) {
        rope.refuse("high_freq_factor", `it must be above low_freq_factor, which is ${lowFrequencyFactor}`);
      }
      return { ropeTheta, rope: { type, ...scaling, lowFrequencyFactor, highFrequencyFactor }, maxPositions };
    }
    case "yarn": {
      const given = rope.present("attention_factor");
      const yarn = {
        attentionFactor: given ? rope.positive("attention_factor") : defaultAttentionFactor(rope, factor),
        betaFast: rope.positive("beta_fast", 32),
        betaSlow: rope.positive("beta_slow", 1),
        truncate: rope.boolean("truncate", true),
      };
      return { ropeTheta, rope: { type, ...scaling, ...yarn }, maxPositions };
    }
  }
}

function defaultAttentionFactor(rope: ConfigFile, factor: number): number {
  const scale = (mscale: number) => (factor <= 1 ? 1 : 0.1 * mscale * Math.log(factor) + 1);
  if (!rope.value("mscale") || !rope.value("mscale_all_dim")) return scale(1); // 0 counts as left out
  return scale(rope.positive("mscale")) / scale(rope.positive("mscale_all_dim"));
}

/** `rope_parameters` as transformers 5 writes it. */
export function ropeJson(ropeTheta: number, rope: ScaledRope | undefined): Record<string, unknown> {
  return {
    rope_type: rope?.type ?? "default",
    rope_theta: ropeTheta,
    ...(rope && { factor: rope.factor, original_max_position_embeddings: rope.originalPositions }),
    ...(rope?.type === "llama3" && {
      low_freq_factor: rope.lowFrequencyFactor,
      high_freq_factor: rope.highFrequencyFactor,
    }),
    ...(rope?.type === "yarn" && {
      attention_factor: rope.attentionFactor,
      beta_fast: rope.betaFast,
      beta_slow: rope.betaSlow,
      truncate: rope.truncate,
    }),
  };
}

/**
 * Radians per position, float32 [headSize / 2]. Every step is rounded to float32 where PyTorch rounds: a frequency that
 * is off by its last bit turns a pair by 0.01 at position 100,000.
 */
export function ropeFrequencies(headSize: number, ropeTheta: number, rope?: ScaledRope): Float32Array {
  const f32 = Math.fround;
  const half = headSize / 2;
  const powers = Float32Array.from({ length: half }, (_, i) => ropeTheta ** f32((2 * i) / headSize));
  const frequencies = powers.map((power) => 1 / power);
  if (rope === undefined) return frequencies;
  switch (rope.type) {
    case "linear":
      return frequencies.map((frequency) => frequency / rope.factor);
    case "llama3": {
      const { factor, originalPositions, lowFrequencyFactor: low, highFrequencyFactor: high } = rope;
      return frequencies.map((frequency) => {
        const wavelength = f32(f32(2 * Math.PI) / frequency);
        if (wavelength > originalPositions / low) return frequency / factor;
        if (wavelength < originalPositions / high) return frequency;
        const smooth = f32(f32(f32(originalPositions / wavelength) - low) / (high - low));
        return f32(f32(f32(1 - smooth) * frequency) / factor) + f32(smooth * frequency);
      });
    }
    case "yarn": {
      const { factor, originalPositions, betaFast, betaSlow, truncate } = rope;
      /** the pair that turns this often over the original positions */
      const pairOf = (turns: number) =>
        (headSize * Math.log(originalPositions / (turns * 2 * Math.PI))) / (2 * Math.log(ropeTheta));
      const round = truncate ? Math : { floor: (x: number) => x, ceil: (x: number) => x };
      const first = Math.max(round.floor(pairOf(betaFast)), 0);
      let last = Math.min(round.ceil(pairOf(betaSlow)), headSize - 1);
      if (first === last) last += 0.001;
      return frequencies.map((frequency, i) => {
        const ramp = Math.min(Math.max(f32(f32(i - f32(first)) / f32(last - first)), 0), 1);
        const kept = f32(1 - ramp);
        const interpolated = f32(1 / f32(factor * powers[i]));
        return f32(interpolated * f32(1 - kept)) + f32(frequency * kept);
      });
    }
  }
}
