/** Rounds scores to five decimals, as the reference's types do. */

/** `round(numpy.float64, 5)`: x * 1e5 rounded half to even, divided by 1e5. */
export function roundNumpy(value: number): number {
  const scaled = value * 1e5;
  if (!Number.isFinite(scaled)) return value;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
  return rounded / 1e5;
}

/** `round(float, 5)`: rounds the double's exact decimal value half to even. */
export function roundExact(value: number): number {
  // A double of at least 2^36 has no bits below the fifth decimal, and toFixed's digits are exact below 1e21.
  if (!Number.isFinite(value) || Math.abs(value) >= 2 ** 53) return value;
  const text = value.toFixed(5);
  // toFixed rounds the exact value, but a tie away from zero. Only a multiple of 2^-6 can be a tie: 5e-6 = 1 / (2^6 * 3125).
  const scaled = Math.abs(value) * 64;
  if (!Number.isInteger(scaled)) return Number(text);
  // The value is exactly n / 64, so n * 1e5 / 64 = n * 3125 / 2 is a tie if n is odd.
  const numerator = BigInt(scaled) * 3125n;
  if (numerator % 2n === 0n) return Number(text);
  const floor = numerator / 2n;
  const even = floor % 2n === 0n ? floor : floor + 1n;
  const digits = even.toString().padStart(6, "0");
  return Number(`${value < 0 ? "-" : ""}${digits.slice(0, -5)}.${digits.slice(-5)}`);
}
