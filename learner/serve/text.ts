/** Converts tokens to text one by one. */
import type { Tokenizer } from "../engine/index.ts";

/** A decoder writes U+FFFD for bytes that are no character. Up to three at the end may be the beginning of a character of four bytes. */
const UNFINISHED = /\uFFFD{1,3}$/;
/**
 * Number of newest tokens that are decoded together: enough for three unfinished characters of three bytes each, and one character before
 * them.
 */
const WINDOW = 12;
/** The window is cut to its newest tokens when it has grown to this size. */
const LONGEST_WINDOW = 16;

/**
 * The text of one answer, from its tokens. The results of `add` and `end` together are the text of all tokens up to the first stop word.
 * They never contain a part of a character, nor the beginning of a possible stop word.
 */
export class TokenText {
  readonly #decode: (tokens: readonly number[]) => string;
  readonly #stop: readonly string[];
  #window: number[] = [];
  /** How much of the window's text was returned or is held. */
  #taken = 0;
  /** Text that could be the beginning of a stop word. */
  #held = "";
  #characters = 0;
  #stopped = false;

  constructor(tokenizer: Pick<Tokenizer, "decode">, stop: readonly string[]) {
    this.#decode = (tokens) => tokenizer.decode(tokens);
    this.#stop = stop;
  }

  /** Whether a stop word was found. Tokens after the one that completes it do not count. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Number of Unicode characters of the text so far, including held text. */
  get characters(): number {
    return this.#characters;
  }

  /** Returns text that is certain now. A stop word counts at the last of the tokens. */
  add(tokens: readonly number[]): string {
    if (tokens.length === 0) return "";
    this.#window = [...this.#window, ...tokens];
    const certain = this.#take(UNFINISHED);
    if (this.#window.length >= LONGEST_WINDOW) {
      this.#window = this.#window.slice(-WINDOW);
      this.#taken = this.#decode(this.#window).replace(UNFINISHED, "").length;
    }
    return certain;
  }

  /** Returns the rest, after the last token. */
  end(): string {
    const rest = this.#take(/$/);
    return this.#stopped ? rest : rest + this.#held;
  }

  /** @param open matches text at the end of the window that is not certain yet */
  #take(open: RegExp): string {
    if (this.#stopped) return "";
    const text = this.#decode(this.#window).replace(open, "");
    const added = text.slice(this.#taken);
    this.#taken = Math.max(this.#taken, text.length);
    for (const _ of added) this.#characters++;
    if (this.#stop.length === 0) return added;
    const all = this.#held + added;
    const found = this.#stop.map((word) => all.indexOf(word)).filter((at) => at >= 0);
    this.#stopped = found.length > 0;
    const begun = () => Math.max(...this.#stop.map((word) => beginning(word, all)));
    const end = this.#stopped ? Math.min(...found) : all.length - begun();
    this.#held = all.slice(end);
    return all.slice(0, end);
  }
}

/** Returns how many characters at the end of `text` are the beginning of `word`, which does not occur in it. */
function beginning(word: string, text: string): number {
  let length = Math.min(word.length - 1, text.length);
  while (!text.endsWith(word.slice(0, length))) length--;
  return length;
}
