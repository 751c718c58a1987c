import { largeAsWritten } from "../tasks/exact-json.ts";
import { type Block, blocksOf, introduction, markdownOf, type Part, withoutAddresses } from "./description.ts";
import type { PromptTask } from "./prompt-task.ts";

export interface Shortened {
  task: PromptTask;
  /** Name of the part that this step removed. */
  cut: string;
}

/** Characters to keep of a record's field and of a whole record, step by step. */
const clips = [
  { field: 200, record: 1000 },
  { field: 80, record: 400 },
  { field: 40, record: 200 },
] as const;

/**
 * Yields ever shorter tasks: the steps by which a scratch prompt is cut until it fits, in this order: images, link addresses and contest
 * rules of the description; long fields; its paragraphs of background and evaluation; shorter fields, further records; its paragraphs about
 * the data; first records, types, packages. The statement is never cut; a task without one uses the description's first paragraph.
 */
export function* shortenings(whole: PromptTask): Generator<Shortened> {
  let task = whole;
  const step = (cut: string, change: Partial<PromptTask>): Shortened => {
    task = { ...task, ...change };
    return { task, cut };
  };

  const description = withoutAddresses(task.description);
  if (description !== task.description) yield step("addresses in the description", { description });
  let blocks = blocksOf(description);
  const mayGo = (block: Block) => whole.statement !== undefined || block !== blocks[0];
  const without = (gone: readonly Block[], cut: string) => {
    blocks = blocks.filter((block) => !gone.includes(block));
    return step(cut, { description: markdownOf(blocks) });
  };
  function* paragraphs(part: Part) {
    for (const block of blocks.filter((block) => block.part === part && mayGo(block)).reverse())
      yield without([block], `description, ${part.toLowerCase()}: ${clip(block.text.replace(/\s+/g, " "), 40)}`);
  }
  function* clipped({ field, record }: (typeof clips)[number]) {
    const snippet = task.snippet.map(({ file, head, records }) => ({
      file,
      ...(head !== undefined && { head: clipRecord(head, record, record) }),
      records: records.map((text) => clipRecord(text, field, record)),
    }));
    if (JSON.stringify(snippet) !== JSON.stringify(task.snippet))
      yield step(`fields over ${field} and records over ${record} characters`, { snippet });
  }
  function* records(least: number) {
    for (;;) {
      const last = task.snippet.findLastIndex(({ records }) => records.length > least);
      if (last < 0) return;
      const shown = task.snippet[last]!;
      const snippet = task.snippet.with(last, { ...shown, records: shown.records.slice(0, -1) });
      yield step(`record ${shown.records.length} of ${shown.file}`, { snippet });
    }
  }

  for (const heading of new Set(blocks.filter(({ part }) => part === "Contest").map(lastHeading))) {
    const gone = blocks.filter((block) => block.part === "Contest" && lastHeading(block) === heading && mayGo(block));
    if (gone.length > 0) yield without(gone, `description, ${heading.replace(/^#+\s*/, "")}`);
  }
  yield* clipped(clips[0]);
  yield* paragraphs("Background");
  yield* paragraphs("Evaluation");
  yield* clipped(clips[1]);
  yield* records(1);
  yield* clipped(clips[2]);
  yield* paragraphs("Data");
  yield* records(0);
  if (task.snippet.length > 0) yield step("data snippet", { snippet: [] });
  if (task.profile) {
    const { profile: _, ...rest } = task;
    task = rest;
    yield { task, cut: "types and missing cells of the columns" };
  }
  if (task.packages.length > 0) yield step("packages", { packages: [] });
}

/**
 * Yields ever shorter tasks for a short prompt: a task without a statement loses the paragraphs of its introduction but the first, last
 * first.
 */
export function* shorterIntroductions(task: PromptTask): Generator<Shortened> {
  if (task.statement !== undefined) return;
  const paragraphs = introduction(task.description);
  for (let left = paragraphs.length - 1; left >= 1; left--) {
    const cut = `description: ${clip(paragraphs[left]!, 40)}`;
    yield { task: { ...task, description: paragraphs.slice(0, left).join("\n\n") }, cut };
  }
}

const lastHeading = ({ headings }: Block): string => headings.at(-1) ?? "";

/** Cuts the fields of a JSON or table record to `field` characters and the whole record to `record`. */
export function clipRecord(text: string, field: number, record: number): string {
  return clip(/^\s*[[{]/.test(text) ? clipJson(text, field) : clipFields(text, field), record);
}

function clipJson(text: string, field: number): string {
  try {
    return JSON.stringify(JSON.parse(text, largeAsWritten), (_, value: unknown) => {
      if (typeof value === "string") return clip(value, field);
      // A list may take as much room as a text.
      const shown = Math.max(1, Math.floor(field / 20));
      return Array.isArray(value) && value.length > shown ? [...value.slice(0, shown), "..."] : value;
    });
  } catch {
    return clip(text, field * 10); // a record that was cut at the end of the read part
  }
}

function clipFields(text: string, field: number): string {
  const fields = text.match(/(?:"(?:[^"]|"")*"?|[^,"])+|(?<=^|,)(?=,|$)/g) ?? [text];
  return fields
    .map((value) => (value.length > field && value.startsWith('"') ? `${clip(value, field)}"` : clip(value, field)))
    .join(",");
}

/** Cuts between characters, never within a surrogate pair. */
export function clip(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const end = /[\uD800-\uDBFF]/.test(text[characters - 1] ?? "") ? characters - 1 : characters;
  return `${text.slice(0, end)}...`;
}
