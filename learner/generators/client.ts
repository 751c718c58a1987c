/** Requests of the learner to one generator. */
import { once } from "node:events";
import { Agent } from "node:https";
import { createInterface } from "node:readline";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { TlsBuffers } from "../../proto/tls-folder.ts";
import type { Address } from "./addresses.ts";
import { GeneratorError } from "./errors.ts";
import { callJson, send, textOf } from "./http.ts";
import {
  type GenerateRequest,
  type GeneratorState,
  HEADERS,
  PATHS,
  parseAnswer,
  parseError,
  parseState,
  type RowAnswer,
} from "./protocol.ts";
import { bodyOf, type PublishedWeights } from "./weights.ts";

/** Time for an answer to a request for the generator's state. */
const STATE_SECONDS = 10;

export class GeneratorClient {
  readonly #address: Address;
  readonly #tls: () => TlsBuffers;
  readonly #agent = new Agent({ keepAlive: true });

  /** @param tls returns the learner's certificate and its trusted authority; called for each connection */
  constructor(address: Address, tls: () => TlsBuffers) {
    this.#address = address;
    this.#tls = tls;
  }

  async state(): Promise<GeneratorState> {
    const signal = AbortSignal.timeout(STATE_SECONDS * 1000);
    const { status, text } = await callJson(this.#url(PATHS.state), { signal, options: this.#options });
    if (status !== 200) throw errorOf(status, text);
    return parseState(text);
  }

  /** Resolves when the generator can sample from these weights. */
  async bring(weights: PublishedWeights, signal: AbortSignal): Promise<void> {
    const { policyVersion, kind, digest, files } = weights;
    const headers = {
      [HEADERS.digest]: digest,
      [HEADERS.files]: JSON.stringify(files),
      "content-length": files.reduce((sum, { bytes }) => sum + bytes, 0),
    };
    const url = this.#url(`${PATHS.weights}${policyVersion}?kind=${kind}`);
    const answer = await send(url, this.#options, { method: "PUT", headers, body: bodyOf(weights), signal });
    const text = await textOf(answer);
    if (answer.statusCode === 200) return;
    answer.socket?.destroy(); // stops sending the rest of the weights
    throw errorOf(answer.statusCode, text);
  }

  /** Resolves when all rows have ended. @param onRow called with each row at its end */
  async generate(request: GenerateRequest, signal: AbortSignal, onRow: (row: RowAnswer) => void): Promise<void> {
    const body = Buffer.from(JSON.stringify(request));
    const headers = { "content-type": "application/json", "content-length": body.length };
    const answer = await send(this.#url(PATHS.generate), this.#options, { method: "POST", headers, body, signal });
    if (answer.statusCode !== 200) throw errorOf(answer.statusCode, await textOf(answer));
    const broken = once(answer, "error").then(([cause]) => Promise.reject(cause));
    const read = async () => {
      for await (const line of createInterface({ input: answer })) onRow(parseAnswer(line));
    };
    try {
      await Promise.race([read(), broken]);
    } finally {
      answer.destroy();
    }
    if (!answer.complete) throw new GeneratorError("failed", "its answer was cut off");
  }

  close(): void {
    this.#agent.destroy();
  }

  #url(path: string): URL {
    return new URL(path, this.#address.url);
  }

  get #options() {
    const { authority, certificate, key } = this.#tls();
    const { servername } = this.#address;
    return {
      agent: this.#agent,
      ca: authority,
      cert: certificate,
      key,
      checkServerIdentity: checkGenerator,
      ...(servername !== undefined && { servername }),
    };
  }
}

/** Checks the role beside the name, because the run's authority also signs other certificates. */
function checkGenerator(host: string, certificate: PeerCertificate): Error | undefined {
  const unit: unknown = certificate.subject?.OU;
  const other = `the certificate of ${host} has the role ${String(unit)}, not generator`;
  return checkServerIdentity(host, certificate) ?? (unit === "generator" ? undefined : new Error(other));
}

function errorOf(status: number | undefined, text: string): GeneratorError {
  try {
    return parseError(JSON.parse(text));
  } catch {
    return new GeneratorError("failed", `it answered ${status}: ${text.slice(0, 200)}`);
  }
}
