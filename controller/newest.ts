/** Reads a stream no faster than its reader wants to work: of what comes in between, the newest counts. */
import type { Readable } from "node:stream";

/** Values that are read between two that are handled; then the stream is paused, and flow control holds the sender up. */
const READ_AHEAD = 4;

export interface NewestReader {
  /** Handles the newest value that was not handled yet, without waiting, and reads no more. */
  end(): void;
}

/** Calls `handle` with the first value at once, then with the newest at most once in `seconds`. */
export function readNewest<T>(stream: Readable, seconds: number, handle: (value: T) => void): NewestReader {
  let newest: T | undefined;
  let unhandled = 0;
  let resting: NodeJS.Timeout | undefined;
  const handleNewest = () => {
    const value = newest;
    [newest, unhandled] = [undefined, 0];
    resting = setTimeout(wake, seconds * 1000);
    if (value !== undefined) handle(value);
  };
  const wake = () => {
    resting = undefined;
    if (newest !== undefined) handleNewest();
    stream.resume();
  };
  const take = (value: T) => {
    newest = value;
    unhandled += 1;
    if (resting === undefined) handleNewest();
    else if (unhandled >= READ_AHEAD) stream.pause();
  };
  stream.on("data", take);
  return {
    end() {
      clearTimeout(resting);
      stream.off("data", take);
      for (let value = stream.read(); value !== null; value = stream.read()) newest = value as T;
      if (newest !== undefined) handle(newest);
      newest = undefined;
    },
  };
}
