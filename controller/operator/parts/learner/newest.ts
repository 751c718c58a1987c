/** Reads a stream of messages at the reader's pace. The reader gets only the newest of the messages that arrive while it works. */
import type { Readable } from "node:stream";

/** Messages that are read between two handled ones. Then the stream is paused, and flow control stops the sender. */
const READ_MESSAGES = 100;
const READ_BYTES = 1024 * 1024;

interface NewestReader {
  /** Handles the newest unhandled message at once and stops reading. */
  end(): void;
}

/** Calls `handle` with the first message at once, then with the newest at most once in `seconds`. */
export function readNewest(stream: Readable, seconds: number, handle: (message: Buffer) => void): NewestReader {
  let newest: Buffer | undefined;
  let [messages, bytes] = [0, 0];
  let resting: NodeJS.Timeout | undefined;
  const handleNewest = () => {
    const message = newest!;
    newest = undefined;
    [messages, bytes] = [0, 0];
    resting = setTimeout(wake, seconds * 1000);
    handle(message);
  };
  const wake = () => {
    resting = undefined;
    if (newest !== undefined) handleNewest();
    stream.resume();
  };
  const take = (message: Buffer) => {
    newest = message;
    messages += 1;
    bytes += message.length;
    if (resting === undefined) handleNewest();
    else if (messages >= READ_MESSAGES || bytes >= READ_BYTES) stream.pause();
  };
  stream.on("data", take);
  return {
    end() {
      clearTimeout(resting);
      stream.off("data", take);
      for (let message = stream.read(); message !== null; message = stream.read()) newest = message as Buffer;
      if (newest !== undefined) handle(newest);
      newest = undefined;
    },
  };
}
