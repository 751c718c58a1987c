/**
 * The first invalid field of a connection's statuses. It stays until all statuses have been valid for some time, so that an intermittent fault
 * is reported once, and a fault that is over is not reported for ever.
 */
export class Nonsense {
  readonly #seconds: number;
  readonly #onOver: () => void;
  #text: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(seconds: number, onOver: () => void) {
    this.#seconds = seconds;
    this.#onOver = onOver;
  }

  /** Takes a status's invalid field. @returns the one to report */
  next(text: string | undefined): string | undefined {
    if (text !== undefined) this.end();
    this.#text ??= text;
    if (text === undefined && this.#text !== undefined)
      this.#timer ??= setTimeout(() => this.#over(), this.#seconds * 1000);
    return this.#text;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #over(): void {
    this.end();
    this.#text = undefined;
    this.#onOver();
  }
}
