/**
 * Requests to a server of the Hugging Face hub's API about one model repository: the token, deadlines and tries. The
 * library asks the API; it neither resumes a file nor checks its hash, so files are requested here (download.ts).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { HubError } from "./errors.ts";
import type { HubLimits } from "./limits.ts";
import { type Asked, failureOf, refusalOf } from "./refusals.ts";

export interface HubOptions {
  endpoint: string;
  repo: string;
  revision: string;
  token: string | undefined;
  limits: HubLimits;
  env: NodeJS.ProcessEnv;
  /** Ends all requests and waits; its reason is thrown. */
  signal: AbortSignal;
  /** Called with one line when something is tried again. */
  say: (line: string) => void;
}

/** An answer whose body is on its way. */
export interface OpenAnswer {
  response: Response;
  /** A byte came: the deadline of silence starts anew. */
  heard(): void;
  /** Ends the request if it goes on. */
  close(): void;
}

export class Hub {
  readonly options: HubOptions;
  readonly #asked: Asked;

  constructor(options: HubOptions) {
    this.options = options;
    const { endpoint, repo, revision, token } = options;
    this.#asked = { endpoint, repo, revision, hasToken: token !== undefined };
  }

  /** Stands for `fetch` in the library. One try. @throws HubError for a refusal too, since the library drops its headers */
  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = String(input instanceof Request ? input.url : input);
    const deadline = AbortSignal.timeout(this.options.limits.answerSeconds * 1000);
    return this.#send(url, { ...init, signal: AbortSignal.any([this.options.signal, deadline]) });
  };

  /** Requests a file's bytes from `start` on. One try. @throws HubError */
  async open(url: string, start: number): Promise<OpenAnswer> {
    const { signal, limits } = this.options;
    const { answerSeconds, silenceSeconds } = limits;
    const controller = new AbortController();
    const abort = (seconds: number) =>
      setTimeout(() => controller.abort(new Error(`silent for ${seconds} s`)), seconds * 1000);
    let timer = abort(answerSeconds);
    const heard = () => {
      clearTimeout(timer);
      timer = abort(silenceSeconds);
    };
    const close = () => {
      clearTimeout(timer);
      controller.abort();
    };
    // Compressed bytes could not be continued by their position.
    const headers = { "accept-encoding": "identity", ...(start > 0 && { range: `bytes=${start}-` }) };
    try {
      const response = await this.#send(url, { headers, signal: AbortSignal.any([signal, controller.signal]) });
      heard();
      return { response, heard, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Does `work` until it succeeds. @throws HubError that is not to be tried again, or the last of `tries` that brought nothing */
  async persist<Result>(url: string, work: (progressed: () => void) => Promise<Result>): Promise<Result> {
    const { limits, say, env, signal } = this.options;
    let failures = 0;
    for (;;) {
      signal.throwIfAborted();
      try {
        return await work(() => {
          failures = 0;
        });
      } catch (cause) {
        signal.throwIfAborted();
        if ((cause as NodeJS.ErrnoException).syscall) throw cause; // of a file: a request's is the cause of a TypeError
        const error = failureOf(cause, url, env);
        if (!error.again || ++failures >= limits.tries) throw error;
        const { afterSeconds } = error.again;
        if (afterSeconds !== undefined && afterSeconds > limits.longestRetryAfterSeconds)
          throw new HubError("network", `${error.message}; it asks to wait for ${Math.ceil(afterSeconds)} s`, {
            cause: error,
          });
        const backoff = Math.min(limits.firstWaitSeconds * 2 ** (failures - 1), limits.longestWaitSeconds);
        const wait = afterSeconds ?? backoff;
        say(`${error.message}; trying again in ${Math.ceil(wait)} s`);
        await sleep(wait * 1000, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** A redirect to another host goes without the token: `fetch` drops it there. */
  async #send(url: string, init: RequestInit): Promise<Response> {
    const { endpoint, token } = this.options;
    const headers = new Headers(init.headers);
    headers.set("user-agent", "longrun");
    if (token !== undefined && new URL(url).origin === new URL(endpoint).origin)
      headers.set("authorization", `Bearer ${token}`);
    const response = await fetch(url, { ...init, headers });
    if (response.ok || response.status === 416) return response;
    await response.body?.cancel();
    throw refusalOf(response, url, this.#asked);
  }
}
