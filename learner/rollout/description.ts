/** Classifies the parts of a task's description, such as a competition's page, so that a prompt can leave out unimportant ones. */

/** The subject of a section; `Contest`: prizes, dates, sponsors and rules, which no program needs. */
export type Part = "Contest" | "Background" | "Evaluation" | "Data";

/** A paragraph, list, table or block of code. */
export interface Block {
  part: Part;
  /** The headings above the block, outermost first, unchanged. */
  headings: readonly string[];
  text: string;
}

const parts: [Part, RegExp][] = [
  [
    "Contest",
    /prize|timeline|citation|code (requirement|competition)|acknowledg|sponsor|recruit|\bjob\b|winner|eligib|getting started|resources|visuali[sz]ation|workshop|cvpr|open data|efficiency|who is|about the|\brules\b|\bhosts?\b|what are social/i,
  ],
  ["Evaluation", /evaluat|submission|\bmetric\b/i],
  ["Data", /\bdata(set)?\b|\bfiles?\b|\bcolumns?\b|\bfields?\b|guidelines|score meanings|what am i predicting/i],
];

/** Splits Markdown into blocks. A section's heading decides its part, otherwise the section around it. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: { level: number; heading: string; part: Part }[] = [];
  let lines: string[] = [];
  let fenced = false;
  const end = () => {
    const text = lines.join("\n").trim();
    lines = [];
    if (text === "") return;
    blocks.push({ part: open.at(-1)?.part ?? "Background", headings: open.map(({ heading }) => heading), text });
  };
  for (const line of markdown.replaceAll("\r\n", "\n").split("\n")) {
    const heading = fenced ? undefined : /^(#{1,6})\s*(.+?)\s*$/.exec(line);
    if (heading) {
      end();
      const level = heading[1]!.length;
      open = open.filter((above) => above.level < level);
      open.push({ level, heading: line.trim(), part: partOf(heading[2]!, open.at(-1)?.part) });
      continue;
    }
    if (/^\s*```/.test(line)) fenced = !fenced;
    if (line.trim() === "" && !fenced) end();
    else lines.push(line.trimEnd());
  }
  end();
  return blocks;
}

function partOf(heading: string, around: Part | undefined): Part {
  // Everything below "Prizes" is about prizes.
  if (around === "Contest") return around;
  return parts.find(([, pattern]) => pattern.test(heading))?.[0] ?? around ?? "Background";
}

/** Returns the blocks below their headings. A heading without remaining blocks is dropped. */
export function markdownOf(blocks: readonly Block[]): string {
  const written: string[] = [];
  let above: readonly string[] = [];
  for (const { headings, text } of blocks) {
    const same = headings.findIndex((heading, i) => heading !== above[i]);
    if (same >= 0) written.push(...headings.slice(same));
    above = headings;
    written.push(text);
  }
  return written.join("\n\n");
}

/** Removes images and links' addresses, and keeps links' text. */
export function withoutAddresses(markdown: string): string {
  return markdown
    .replace(/!\[[^\]]*\]\([^)\s]*(\([^)]*\)[^)]*)*\)/g, "")
    .replace(/\[([^\]]*)\]\([^)\s]*(\([^)]*\)[^)\s]*)*\)/g, "$1")
    .replace(/<?https?:\/\/[^\s>)]+>?/g, "");
}

/** Returns the paragraphs from the first one to the next heading, each on one line. */
export function introduction(markdown: string): string[] {
  const paragraphs = markdown.split(/\n\s*\n/).map((paragraph) => {
    return { isHeaded: /^#/m.test(paragraph), text: paragraph.replace(/^#.*$/gm, "").replace(/\s+/g, " ").trim() };
  });
  const first = paragraphs.findIndex(({ text }) => text !== "");
  if (first < 0) return [];
  const next = paragraphs.findIndex(({ isHeaded }, i) => i > first && isHeaded);
  return paragraphs.slice(first, next < 0 ? undefined : next).flatMap(({ text }) => (text === "" ? [] : [text]));
}
