/** Protects browsers from a model's text: no script runs, and nothing is fetched or sent. */
export const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** HTML as values: a template escapes its arguments, unless they are HTML already. */
export interface Html {
  readonly html: string;
}

type Part = string | number | Html | null | undefined | false | readonly Part[];

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { html: strings.reduce((text, string, index) => text + render(parts[index - 1]) + string) };
}

export function heads(titles: readonly string[]): Html[] {
  return titles.map((title) => (title === "" ? html`<th></th>` : html`<th scope="col">${title}</th>`));
}

export function row(label: string, cells: readonly string[]): Html {
  return html`<tr><th scope="row">${label}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
}

/** A table that scrolls in its box where the page is narrower, by keys too. */
export const table = (kind: string, head: Html | readonly Html[], body: Html | readonly Html[]): Html =>
  html`<div class="scroll" tabindex="0"><table class="${kind}"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;

/** For text that is HTML already: SVG that was rendered here, and the style sheet. */
export function trusted(text: string): Html {
  return { html: text };
}

/**
 * Returns text as a terminal would show it. Escape sequences are dropped. If carriage returns overwrite a line, only its last state stays.
 * Other control characters become visible symbols.
 */
export function terminalText(text: string): string {
  return (
    text
      .replace(/\r\n/g, "\n")
      .split("\n")
      .map((line) => line.replace(/\r+$/, "").replace(/^[^\n]*\r/, ""))
      .join("\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g, "")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
      .replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
  );
}

function render(part: Part): string {
  if (part === null || part === undefined || part === false) return "";
  if (typeof part === "object") return "html" in part ? part.html : part.map(render).join("");
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
