/** Generates the choices of one request, and writes its answer: whole, or as a stream of server-sent events. */
import type { ServerResponse } from "node:http";
import { type Delta, type Generating, generateChoice } from "./choice.ts";
import type { RequestError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { ServeMetrics } from "./metrics.ts";
import type { ServedModel } from "./model.ts";
import type { GenerationRequest } from "./request.ts";
import { shapesOf, usageOf } from "./shapes.ts";

/** Number of choices that run or wait for a slot. */
export interface Load {
  open: number;
}

/**
 * Generates and writes the answer.
 *
 * @param since when the request arrived, by performance.now()
 * @throws the error that ended a choice first; nothing if the client has hung up
 */
export async function answer(
  engine: Generating,
  model: ServedModel,
  request: GenerationRequest,
  response: ServerResponse,
  { load, metrics, since }: { load: Load; metrics: ServeMetrics; since: number },
): Promise<void> {
  const shapes = shapesOf(request, model);
  const { endpoint, stream, includeUsage } = request;
  const none: Delta = { text: "", count: 0, tokens: [], finishReason: null };
  const choices = Array.from({ length: request.prompts.length * request.n }, (_, index) => ({ index, ...none }));
  const begun = new Set<number>();
  const prefix = endpoint === "chat/completions" ? (model.answerPrefix ?? "") : "";
  const ended = new AbortController();
  response.once("close", () => ended.abort(new HungUp()));
  if (response.destroyed) return;

  const sendDelta = (index: number, delta: Delta): void => {
    metrics.tokens.inc({ kind: "generated" }, delta.count);
    const { text, count, tokens } = choices[index]!;
    const whole = stream ? none : { text: text + delta.text, tokens: [...tokens, ...delta.tokens] };
    choices[index] = { ...delta, ...whole, index, count: count + delta.count, finishReason: delta.finishReason };
    if (!stream || (delta.text === "" && delta.finishReason === null && !request.logProbs)) return;
    if (!response.headersSent) metrics.firstTokenSeconds.observe({ endpoint }, (performance.now() - since) / 1000);
    send(response, shapes.part({ ...delta, index }, !begun.has(index)));
    begun.add(index);
  };
  const run = async (index: number): Promise<void> => {
    load.open++;
    try {
      if (prefix !== "") sendDelta(index, { ...none, text: prefix });
      await generateChoice(engine, model, request, index, ended.signal, (delta) => sendDelta(index, delta));
      metrics.choices.inc({ end: choices[index]!.finishReason! });
    } catch (cause) {
      metrics.choices.inc({ end: cause instanceof HungUp ? "abandoned" : "failed" });
      ended.abort(cause); // an incomplete set of choices is no answer
      throw cause;
    } finally {
      load.open--;
    }
  };
  metrics.tokens.inc({ kind: "prompt" }, usageOf(request, 0).prompt_tokens);
  try {
    await Promise.all(choices.map(({ index }) => run(index)));
  } catch (cause) {
    if (cause instanceof HungUp) return;
    throw cause;
  }
  const generated = choices.reduce((sum, { count }) => sum + count, 0);
  const usage = usageOf(request, generated);
  if (!stream) return sendJson(response, 200, shapes.whole(choices, usage));
  if (includeUsage) send(response, shapes.usage(usage));
  response.end("data: [DONE]\n\n");
}

class HungUp extends Error {}

const EVENTS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no", // otherwise nginx would buffer the events
};

function send(response: ServerResponse, event: object): void {
  if (!response.headersSent) response.writeHead(200, EVENTS);
  response.write(`data: ${JSON.stringify(event)}\n\n`);
  if (response.writableLength > LIMITS.unreadBytes) response.destroy();
}

export function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) })
    .end(text);
}

/** Ends the answer with an error: as its status, or as the last event of a started stream. */
export function sendError(response: ServerResponse, error: RequestError): void {
  if (response.headersSent) {
    response.end(`data: ${JSON.stringify(error.body())}\n\n`);
    return;
  }
  if (error.status === 429) response.setHeader("retry-after", LIMITS.retryAfterSeconds);
  if (error.status === 401) response.setHeader("www-authenticate", "Bearer");
  sendJson(response, error.status, error.body());
}
