/** Shows a fetch's progress: on a terminal one line that changes, elsewhere a line from time to time. */
import { size } from "../engine/index.ts";

const TERMINAL_SECONDS = 0.5;
const LOG_SECONDS = 10;

export interface ProgressOutput {
  isTTY?: boolean;
  write(text: string): unknown;
}

export class Progress {
  readonly #output: ProgressOutput;
  readonly #what: string;
  readonly #startMs = performance.now();
  #total = 0;
  #done = 0;
  #come = 0;
  #shownMs = this.#startMs;

  constructor(output: ProgressOutput, what: string) {
    this.#output = output;
    this.#what = what;
  }

  /** Bytes that came over the network, including discarded ones. */
  get come(): number {
    return this.#come;
  }

  /** @param there bytes of an earlier fetch */
  expect(bytes: number, there: number): void {
    this.#total += bytes;
    this.#done += there;
  }

  count(bytes: number): void {
    this.#done += bytes;
    if (bytes > 0) this.#come += bytes;
    const now = performance.now();
    if (now - this.#shownMs < (this.#output.isTTY ? TERMINAL_SECONDS : LOG_SECONDS) * 1000) return;
    this.#shownMs = now;
    const seconds = (now - this.#startMs) / 1000;
    this.#output.write(this.#output.isTTY ? `\r\x1b[K${this.line(seconds)}` : `${this.line(seconds)}\n`);
  }

  line(seconds: number): string {
    const share = Math.floor((100 * this.#done) / Math.max(this.#total, 1));
    const done = `${this.#what}: ${size(this.#done)} of ${size(this.#total)} (${share} %)`;
    const rate = this.#come / Math.max(seconds, 0.001);
    if (rate < 1) return done; // nothing has come yet: there is no pace to tell the time from
    return `${done}, ${size(Math.round(rate))}/s, ${duration((this.#total - this.#done) / rate)} left`;
  }

  /** Prints a permanent line above the changing one. */
  say(text: string): void {
    this.#output.write(`${this.#output.isTTY ? "\r\x1b[K" : ""}${text}\n`);
  }

  clear(): void {
    if (this.#output.isTTY) this.#output.write("\r\x1b[K");
  }
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  return seconds < 5400 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
