/** Requests whose answer may take as long as a row. `fetch` would give up after five minutes. */
import { once } from "node:events";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https, { type RequestOptions as HttpsOptions } from "node:https";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export interface Asked {
  method: string;
  headers: Record<string, string | number>;
  body?: Readable | Buffer | undefined;
  signal: AbortSignal;
}

/** Returns the answer when its headers are there. @throws Error of the connection; the reason of `signal` */
export async function send(
  url: URL,
  options: HttpsOptions,
  { method, headers, body, signal }: Asked,
): Promise<IncomingMessage> {
  const how: RequestOptions = { ...options, method, headers, signal };
  const request = url.protocol === "https:" ? https.request(url, how as HttpsOptions) : http.request(url, how);
  const answer = once(request, "response") as Promise<[IncomingMessage]>;
  answer.catch(() => {});
  if (body === undefined || Buffer.isBuffer(body)) request.end(body);
  else {
    // a server that refuses the rest of a body answers before it is sent
    const sent = pipeline(body, request);
    sent.catch(() => {});
  }
  const [response] = await answer;
  return response;
}

export async function textOf(answer: IncomingMessage, mostBytes = Number.POSITIVE_INFINITY): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new Error(`it has more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Bytes of an answer in JSON. A row of 100,000 tokens has less. */
const ANSWER_BYTES = 64 * 1024 * 1024;

/** Sends a POST request with JSON, or a GET request without a body. @throws Error also for an answer of more than ANSWER_BYTES */
export async function callJson(
  url: URL,
  { body, signal, options = {} }: { body?: object | undefined; signal: AbortSignal; options?: HttpsOptions },
): Promise<{ status: number; text: string }> {
  const sent = body && Buffer.from(JSON.stringify(body));
  const headers: Asked["headers"] = sent ? { "content-type": "application/json", "content-length": sent.length } : {};
  const answer = await send(url, options, { method: sent ? "POST" : "GET", headers, body: sent, signal });
  return { status: answer.statusCode ?? 0, text: await textOf(answer, ANSWER_BYTES) };
}
