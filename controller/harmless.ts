/**
 * Text that others wrote, for a terminal: programs, learners, and whoever a message quotes. Escape sequences in it could write to
 * the clipboard, set titles, or hide and reorder what else is shown.
 *
 * Control characters but line feeds and tabs become visible symbols; C1 controls and those of writing direction U+FFFD.
 */
export function harmless(text: string): string {
  return (
    text
      .replaceAll("\r\n", "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
      .replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
  );
}
