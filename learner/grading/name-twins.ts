/** Finds names that look like another name but are different: a blank at the end, other capitals, accents as separate characters. */

/** Returns the name that `wanted` probably means, quoted, and how it differs. Undefined if no name looks like it. */
export function twinOf(wanted: string, names: readonly string[]): Twin | undefined {
  const name = names.find((it) => it !== wanted && plain(it) === plain(wanted));
  if (name === undefined) return undefined;
  const told = differences.filter(([, feature]) => feature(name) !== feature(wanted));
  return { name, quoted: quoted(name), difference: told.map(([text]) => text).join(", ") };
}

interface Twin {
  name: string;
  quoted: string;
  difference: string;
}

/** Returns the text with each character that cannot be seen, or that joins with the one before it, as \uXXXX. */
export function escaped(text: string): string {
  return text.replace(
    /(?! )[\p{M}\p{C}\p{Z}]/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`,
  );
}

const quoted = (name: string) => escaped(JSON.stringify(name));

/** Returns the name as it stands, in quotes if it could be misread. */
export function shownName(name: string): string {
  return /^\s|\s$|\s\s|,|(?! )[\p{M}\p{C}\p{Z}]/u.test(name) ? quoted(name) : name;
}

const invisible = /\p{Cf}/gu;
const composed = (name: string) => name.normalize("NFC");
const plain = (name: string) =>
  name.normalize("NFKC").replaceAll(invisible, "").replaceAll(/\s+/gu, " ").trim().toLowerCase();

/** Texts for people, with the feature of a name in which two names then differ. */
const differences: [text: string, feature: (name: string) => string | number][] = [
  ["a blank in front", (name) => name.length - name.trimStart().length],
  ["a blank at the end", (name) => name.length - name.trimEnd().length],
  ["other blanks inside", (name) => name.trim().match(/\s+/gu)?.join("|") ?? ""],
  ["an invisible character", (name) => name.match(invisible)?.join("") ?? ""],
  ["accents in another Unicode form", (name) => (composed(name) === name ? "NFC" : "NFD")],
  [
    "other capitals",
    (name) =>
      composed(name)
        .replaceAll(/\P{Lu}/gu, " ")
        .replaceAll(/ +/g, " ")
        .trim(),
  ],
];
