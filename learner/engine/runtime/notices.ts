/** Notices from the engine's threads to the engine's owner, beside results and errors. Any thread can send and receive them. */
import { BroadcastChannel } from "node:worker_threads";

const CHANNEL = "longrun engine notices";
const told = new Set<string>();

/** Sends a notice, once in a thread. */
export function notice(text: string): void {
  if (told.has(text)) return;
  told.add(text);
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(text);
  channel.close();
}

/** Calls `listener` with each later notice. It keeps no process alive. @returns a function that stops it */
export function onNotice(listener: (text: string) => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = (event) => listener((event as { data: string }).data);
  channel.unref();
  return () => channel.close();
}
