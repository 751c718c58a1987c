/** Renders Python source as HTML with marked keywords, strings, numbers and comments. Invalid source is shown unchanged. */
import { parser } from "@lezer/python";
import { type Html, html } from "./html.ts";

const KINDS: Readonly<Record<string, string>> = {
  Comment: "comment",
  String: "string",
  FormatString: "string",
  Number: "number",
  Boolean: "number",
  None: "number",
};

export function highlightPython(source: string): Html {
  const parts: Html[] = [];
  let position = 0;
  const mark = (from: number, to: number, kind: string) => {
    if (from > position) parts.push(html`${source.slice(position, from)}`);
    parts.push(html`<span class="py-${kind}">${source.slice(from, to)}</span>`);
    position = to;
  };
  parser.parse(source).iterate({
    enter: ({ name, from, to, type }) => {
      const kind = KINDS[name];
      if (kind && from >= position && to > from) {
        mark(from, to, kind);
        return false;
      }
      // In this grammar a keyword is a node with the keyword's name.
      const isKeyword = !type.isError && /^[a-z]+$/.test(name) && source.slice(from, to) === name;
      if (isKeyword && from >= position) mark(from, to, "keyword");
    },
  });
  return html`${parts}${source.slice(position)}`;
}
