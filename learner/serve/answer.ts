/** Generates the choices of one request, and writes its answer: whole, or as a stream of server-sent events. */
import type { ServerResponse } from "node:http";
import { type ChoiceToken, type Delta, type Generating, generateChoice } from "./choice.ts";
import type { RequestError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import type { ServeMetrics } from "./metrics.ts";
import type { GenerationRequest, ServedModel } from "./request.ts";
import { shapesOf, usageOf } from "./shapes.ts";

/** Choices that run or wait for a slot. */
export interface Load {
  open: number;
}

/**
 * @param since when the request came, performance.now()
 * @throws whatever ended a choice, once all have ended; nothing where the client has hung up
 */
export async function answer(
  engine: Generating,
  model: ServedModel,
  request: GenerationRequest,
  response: ServerResponse,
  { load, metrics, since }: { load: Load; metrics: ServeMetrics; since: number },
): Promise<void> {
  const shapes = shapesOf(request, model);
  const { endpoint, stream } = request;
  const count = request.prompts.length * request.n;
  const choices = Array.from({ length: count }, (_, index) => new Choice(index));
  const ended = new AbortController();
  response.once("close", () => ended.abort(new HungUp()));

  const tell = (choice: Choice, delta: Delta): void => {
    metrics.tokens.inc({ kind: "generated" }, delta.count);
    choice.add(delta, !stream);
    if (!stream || (delta.text === "" && delta.finishReason === null && !request.logProbs)) return;
    if (!response.headersSent) metrics.firstTokenSeconds.observe({ endpoint }, (performance.now() - since) / 1000);
    send(response, shapes.part({ ...delta, index: choice.index }, choice.first()));
  };
  const run = async (choice: Choice): Promise<void> => {
    load.open++;
    try {
      await generateChoice(engine, model, request, choice.index, ended.signal, (delta) => tell(choice, delta));
      metrics.choices.inc({ end: choice.finishReason ?? "failed" });
    } catch (cause) {
      metrics.choices.inc({ end: cause instanceof HungUp ? "abandoned" : "failed" });
      ended.abort(cause); // one choice alone is no answer
      throw cause;
    } finally {
      load.open--;
    }
  };
  metrics.tokens.inc({ kind: "prompt" }, usageOf(request, 0).prompt_tokens);
  try {
    await Promise.all(choices.map(run));
  } catch (cause) {
    if (!(cause instanceof HungUp)) throw cause;
    return;
  }
  const usage = usageOf(
    request,
    choices.reduce((sum, { count }) => sum + count, 0),
  );
  if (!stream) return sendJson(response, 200, shapes.whole(choices, usage));
  if (request.includeUsage) send(response, shapes.usage(usage));
  response.end("data: [DONE]\n\n");
}

class HungUp extends Error {}

/** What is known of a choice. */
class Choice {
  readonly index: number;
  readonly tokens: ChoiceToken[] = [];
  text = "";
  count = 0;
  finishReason: Delta["finishReason"] = null;
  #told = false;

  constructor(index: number) {
    this.index = index;
  }

  /** @param keep whether text and tokens are needed at the end */
  add({ text, count, tokens, finishReason }: Delta, keep: boolean): void {
    this.count += count;
    this.finishReason = finishReason;
    if (!keep) return;
    this.text += text;
    this.tokens.push(...tokens);
  }

  /** Whether it is asked for the first time. */
  first(): boolean {
    const first = !this.#told;
    this.#told = true;
    return first;
  }
}

const EVENTS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no", // nginx would collect them
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

/** Ends the answer with an error: as its status, or as the last event of a stream that has begun. */
export function sendError(response: ServerResponse, error: RequestError): void {
  if (response.headersSent) {
    response.end(`data: ${JSON.stringify(error.body())}\n\n`);
    return;
  }
  if (error.status === 429) response.setHeader("retry-after", LIMITS.retryAfterSeconds);
  if (error.status === 401) response.setHeader("www-authenticate", "Bearer");
  sendJson(response, error.status, error.body());
}
