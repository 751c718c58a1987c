/** Retries with growing waits, and the deadline of an answer under way, for all servers. */
import { setTimeout as sleep } from "node:timers/promises";
import { size } from "../engine/index.ts";
import { TransferError } from "./errors.ts";
import type { TransferLimits } from "./limits.ts";

export interface Transfer {
  limits: TransferLimits;
  /** Ends all requests and waits; its reason is thrown. */
  signal: AbortSignal;
  /** Called with one line when a request is tried again. */
  say: (line: string) => void;
}

/** A server's answer to a request for a file. */
export interface Answer {
  /** 206: the file from the requested position on; 200: all of the file; 416: it cannot continue there. */
  status: number;
  /** `Content-Range` of 206. */
  range: string | undefined;
  body: AsyncIterable<Uint8Array>;
}

/** An answer whose body is being received. */
export interface OpenAnswer extends Answer {
  /** Call it when a byte arrives: it restarts the deadline of silence. */
  heard(): void;
  /** Ends the request if it still runs. */
  close(): void;
}

/**
 * Does `work` until it succeeds.
 *
 * @param explain returns the error of a request
 * @throws TransferError if a retry is useless, or after `tries` in a row without a new byte
 */
export async function persist<Result>(
  { limits, say, signal }: Transfer,
  explain: (cause: unknown) => TransferError,
  work: (progressed: () => void) => Promise<Result>,
): Promise<Result> {
  let failures = 0;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work(() => {
        failures = 0;
      });
    } catch (cause) {
      signal.throwIfAborted();
      if (isOfFile(cause)) throw cause;
      const error = explain(cause);
      if (!error.again || ++failures >= limits.tries) throw error;
      const { afterSeconds } = error.again;
      if (afterSeconds !== undefined && afterSeconds > limits.longestRetryAfterSeconds)
        throw new TransferError("network", `${error.message}; it asks to wait for ${Math.ceil(afterSeconds)} s`, {
          cause: error,
        });
      const backoff = Math.min(limits.firstWaitSeconds * 2 ** (failures - 1), limits.longestWaitSeconds);
      const wait = afterSeconds ?? backoff;
      say(`${error.message}; trying again in ${Math.ceil(wait)} s`);
      await sleep(wait * 1000, undefined, { signal }).catch(() => {});
    }
  }
}

/** Returns whether an error is about a file of this machine. System calls of a request have an address instead. */
const isOfFile = (cause: unknown): boolean => {
  const { syscall, path, code } = cause as NodeJS.ErrnoException;
  return syscall !== undefined && (path !== undefined || /^(ENOSPC|EDQUOT|EIO|EROFS|EFBIG)$/.test(code ?? ""));
};

/** Returns the text of an answer about files. @throws TransferError if it is longer than `answerBytes` */
export async function readText(
  body: AsyncIterable<Uint8Array> | null | undefined,
  url: string,
  { answerBytes }: TransferLimits,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > answerBytes) throw tooMuch(url, `an answer of more than ${size(answerBytes)}`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The error for a server that sends more than a limit. */
export const tooMuch = (url: string, what: string): TransferError =>
  new TransferError("input", `${url} sends ${what}, which no list of a model's files needs; check the address`);

/** Sends a request for bytes of a file. One try. @throws whatever `send` throws */
export async function openAnswer(
  { limits, signal }: Transfer,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<OpenAnswer> {
  const controller = new AbortController();
  const abort = (seconds: number) =>
    setTimeout(() => controller.abort(new Error(`silent for ${seconds} s`)), seconds * 1000);
  let timer = abort(limits.answerSeconds);
  const heard = () => {
    clearTimeout(timer);
    timer = abort(limits.silenceSeconds);
  };
  const close = () => {
    clearTimeout(timer);
    controller.abort();
  };
  try {
    const answer = await send(AbortSignal.any([signal, controller.signal]));
    heard();
    return { ...answer, heard, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** Does `work` for all items, `most` at once. The first error stops the others and is thrown when they have ended. */
export async function sideBySide<Item>(
  items: readonly Item[],
  most: number,
  stop: AbortController,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && !stop.signal.aborted; item = waiting.shift())
      await work(item).catch((error) => stop.abort(error));
  };
  await Promise.all(Array.from({ length: most }, worker));
  stop.signal.throwIfAborted();
}
