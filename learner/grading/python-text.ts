/** Converts texts and numbers as Python does. */

/** Cells that pandas 2.2 reads as missing values. */
export const missingTokens: ReadonlySet<string> = new Set([
  ...["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"],
  ...["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"],
]);

/** White space of Python's `str.split` and `str.strip`: includes U+001C-1F and U+0085, excludes U+FEFF. */
const whiteSpace = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const separators = new RegExp(`[${whiteSpace}]+`, "u");
/** White space that `float` strips at both ends: excludes U+001C-1F. */
const floatSpace = new RegExp(`[${whiteSpace.replace("\\x1c-\\x20", " ")}]`, "u");

export function pythonSplit(text: string): string[] {
  return text.split(separators).filter((word) => word !== "");
}

const floatText = /^[+-]?(\d(_?\d)*(\.(\d(_?\d)*)?)?|\.\d(_?\d)*)(e[+-]?\d(_?\d)*)?$/i;

/** Longer texts do not count as numbers, which bounds the time. */
const maxFloatCharacters = 10_000;

/** Returns `float(text)`, or undefined if Python raises ValueError. */
export function pythonFloat(text: string): number | undefined {
  let [start, end] = [0, text.length];
  while (start < end && floatSpace.test(text[start]!)) start++;
  while (end > start && floatSpace.test(text[end - 1]!)) end--;
  if (end - start > maxFloatCharacters) return undefined;
  const plain = text.slice(start, end).replace(/[^\P{Nd}0-9]/gu, decimalDigit);
  if (floatText.test(plain)) return Number(plain.replaceAll("_", ""));
  const word = /^([+-]?)(inf|infinity|nan)$/i.exec(plain);
  if (!word) return undefined;
  if (word[2]!.toLowerCase() === "nan") return Number.NaN;
  return word[1] === "-" ? -Infinity : Infinity;
}

/** Returns the value of a decimal digit in any script: Unicode has them in runs of ten. */
function decimalDigit(digit: string): string {
  const code = digit.codePointAt(0)!;
  let zero = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String((code - zero) % 10);
}

/** Returns `repr(value)` of a float: `7.0`, `1e-05`, `1e+16`. */
export function pythonRepr(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (Object.is(value, -0)) return "-0.0";
  const [digits, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 16) {
    const fixed = String(value);
    return fixed.includes(".") ? fixed : `${fixed}.0`;
  }
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
