/**
 * Requests to a server of the Hugging Face hub's API about one model repository: the token, deadlines and tries. The
 * library asks the API; it neither resumes a file nor checks its hash, so files are requested here (download.ts).
 */
import { Readable } from "node:stream";
import type { TransferError } from "./errors.ts";
import { type Asked, failureOf, refusalOf } from "./refusals.ts";
import { type OpenAnswer, openAnswer, persist, readText, type Transfer } from "./transfer.ts";

interface HubOptions extends Transfer {
  endpoint: string;
  repo: string;
  revision: string;
  token: string | undefined;
  env: NodeJS.ProcessEnv;
}

export class Hub {
  readonly options: HubOptions;
  readonly #asked: Asked;

  constructor(options: HubOptions) {
    this.options = options;
    const { endpoint, repo, revision, token } = options;
    this.#asked = { endpoint, repo, revision, hasToken: token !== undefined };
  }

  /** Stands for `fetch` in the library. One try. @throws TransferError for a refusal too, since the library drops its headers */
  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = String(input instanceof Request ? input.url : input);
    const deadline = AbortSignal.timeout(this.options.limits.answerSeconds * 1000);
    const response = await this.#send(url, { ...init, signal: AbortSignal.any([this.options.signal, deadline]) });
    const { status, headers } = response;
    return new Response(await readText(response.body, url, this.options.limits), { status, headers });
  };

  /** Requests a file's bytes from `start` on. One try. @throws TransferError */
  open(url: string, start: number): Promise<OpenAnswer> {
    // Compressed bytes could not be continued by their position.
    const headers = { "accept-encoding": "identity", ...(start > 0 && { range: `bytes=${start}-` }) };
    return openAnswer(this.options, async (signal) => {
      const { status, headers: answered, body } = await this.#send(url, { headers, signal });
      return { status, range: answered.get("content-range") ?? undefined, body: body ?? Readable.from([]) };
    });
  }

  /** Retries `work` until it succeeds. @throws TransferError */
  persist<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
    return persist(this.options, (cause) => this.explain(cause, url), work);
  }

  explain(cause: unknown, url: string): TransferError {
    return failureOf(cause, url, this.options.env);
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
