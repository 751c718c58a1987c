/**
 * Makes others' text safe for a terminal: text of programs, learners and error messages. Its escape sequences could write to the clipboard,
 * set titles, or hide and reorder other text.
 *
 * Control characters except line feeds and tabs become visible symbols; C1 controls and controls of writing direction become U+FFFD.
 */
export function harmless(text: string): string {
  return (
    text
      .replaceAll("\r\n", "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to replace
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) => String.fromCharCode(0x2400 + control.charCodeAt(0)))
      .replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
  );
}
