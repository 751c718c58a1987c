/** Formats numbers and times for people. Null and undefined (not measured) become a dash, unlike zero. */
export const NONE = "–";

type Measured = number | null | undefined;

/** Formats a number with about four digits. */
export function number(value: Measured): string {
  return isNumber(value) ? digits(value).replaceAll("-", "−") : NONE;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 10_000) return Math.round(value).toLocaleString("en-US");
  if (size >= 100) return value.toFixed(1).replace(/\.0$/, "");
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  return size >= 10 ? value.toFixed(2) : value.toFixed(3);
}

export function count(value: Measured): string {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

export function percent(value: Measured): string {
  if (!isNumber(value)) return NONE;
  const hundred = value * 100;
  return `${hundred > 0 && hundred < 9.95 ? hundred.toFixed(1) : hundred.toFixed(0)} %`;
}

/** Formats a program's time, from milliseconds to minutes. */
export function duration(seconds: Measured): string {
  if (!isNumber(seconds)) return NONE;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 60 ? `${seconds.toFixed(seconds < 10 ? 2 : 1)} s` : span(seconds);
}

/** Formats a run's time, from seconds to days. */
export function span(seconds: Measured): string {
  if (!isNumber(seconds)) return NONE;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [whole / 86_400, (whole / 3600) % 24, (whole / 60) % 60].map(Math.floor);
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

/** Formats a difference with its sign; `unit` formats its size. */
export function change(from: Measured, to: Measured, unit: (value: number) => string): string {
  if (!isNumber(from) || !isNumber(to)) return NONE;
  const difference = to - from;
  const size = unit(Math.abs(difference));
  if (size === unit(0)) return "±0";
  return `${difference > 0 ? "+" : "−"}${size}`;
}

export function time(iso: string | undefined): string {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC` : NONE;
}

function isNumber(value: Measured): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
