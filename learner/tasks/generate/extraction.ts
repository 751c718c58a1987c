/** Tables of texts from which words are selected: the target is the words of one group, and a column says which group. */
import type { FeatureColumn } from "./features.ts";
import type { Draws } from "./random.ts";
import type { Target } from "./targets.ts";

const GROUPS = {
  colours: ["amber", "azure", "coral", "crimson", "ivory", "jade", "maroon", "ochre", "teal", "violet"],
  tools: ["anvil", "auger", "chisel", "clamp", "hammer", "lathe", "plane", "pliers", "saw", "wrench"],
  animals: ["badger", "crane", "ferret", "heron", "lynx", "marten", "otter", "stoat", "vole", "weasel"],
} as const;
const OTHERS = [
  "a",
  "and",
  "at",
  "beside",
  "in",
  "its",
  "near",
  "of",
  "old",
  "on",
  "one",
  "the",
  "under",
  "with",
  "without",
];
const OTHER_WORDS = [3, 7] as const;
const OF_A_GROUP = [1, 3] as const;

/** Draws a text of every group's words for each row; `noise` is the chance that a selected word is missing in the label. */
export function drawExtraction(
  rows: number,
  noise: number,
  draws: Draws,
): { columns: FeatureColumn[]; target: Target } {
  const names = Object.keys(GROUPS) as (keyof typeof GROUPS)[];
  const groups = Array.from({ length: rows }, () => draws.one(names));
  const texts = groups.map(() => {
    const words = names.flatMap((name) => draws.some(GROUPS[name], draws.whole(...OF_A_GROUP)));
    return draws.some([...words, ...draws.some(OTHERS, draws.whole(...OTHER_WORDS))], 99);
  });
  const selected = texts.map((words, row) =>
    words.filter((word) => (GROUPS[groups[row]!] as readonly string[]).includes(word)),
  );
  const labels = selected.map((words) => {
    const kept = words.filter(() => !draws.chance(noise));
    return (kept.length > 0 ? kept : words).join(" ");
  });
  return {
    columns: [
      { name: "wanted", kind: "category", cells: groups },
      { name: "sentence", kind: "text", cells: texts.map((words) => words.join(" ")) },
    ],
    target: { name: "selected", kind: "extraction", labels, known: (row) => [selected[row]!.join(" ")] },
  };
}
