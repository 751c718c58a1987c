import assert from "node:assert/strict";
import { after } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readTokenizer } from "../engine/index.ts";
import type { Generating } from "./choice.ts";
import { EncoderThread } from "./encoder.ts";
import type { ServedModel } from "./model.ts";
import { ApiServer, type ServerOptions } from "./server.ts";

export const tokenizer = readTokenizer(fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url)));
const encoder = new EncoderThread(tokenizer.files);
export const model: ServedModel = {
  ...{ name: "tiny", tokenizer, encoder, vocabSize: 2048, maxPositions: 1000, eosIds: [2], createdSeconds: 7 },
};
export const LETTERS = tokenizer.encode("import pandas as pd");

/** An engine whose rows emit a token every `milliseconds` until they are stopped; streams get `perPart` tokens at a time. */
export class FakeEngine implements Generating {
  failure: Generating["failure"];
  rows = 0;
  aborted = 0;
  readonly milliseconds: number;
  readonly perPart: number;
  constructor(milliseconds = 0, perPart = 1) {
    this.milliseconds = milliseconds;
    this.perPart = perPart;
  }

  generate: Generating["generate"] = async (_prompts, { maxNewTokens, signal, streams }, listener) => {
    this.rows++;
    try {
      const [response, logProbs]: number[][] = [[], []];
      let told = 0;
      for (let at = 0; at < maxNewTokens; at++) {
        await (this.milliseconds > 0 ? sleep(this.milliseconds) : nextTurn());
        if (this.failure) throw this.failure;
        if (signal?.aborted) this.aborted++;
        signal?.throwIfAborted();
        response.push(LETTERS[at % LETTERS.length]!);
        logProbs.push(-at);
        const ended = response.length === maxNewTokens;
        if (!ended && !(streams && response.length === this.perPart * (told + 1))) continue;
        const from = this.perPart * told++;
        const part = {
          ...{ response: Int32Array.from(response.slice(from)), logProbs: Float32Array.from(logProbs.slice(from)) },
          ...{ finished: false, ended },
        };
        listener?.(0, part);
      }
      return [];
    } finally {
      this.rows--;
    }
  };
}

/** After a test that failed, its server waits no longer for the requests that are left. */
const FAILED_TEST_SECONDS = 2;
const servers = new Set<ApiServer>();
const end = async (server: ApiServer) => {
  servers.delete(server);
  await server.end();
};
after(async () => {
  await Promise.all([...servers].map(end));
  await encoder.close();
});

/** Returns a server with its address, calls of it, and the faults that it logs. */
export async function started(options: Partial<ServerOptions> = {}, engine: Generating | null = new FakeEngine()) {
  const faults: string[] = [];
  const server = await ApiServer.listen({
    ...{ host: "127.0.0.1", port: 0, key: undefined, loopback: true, slots: 2, maxWaiting: 2, model },
    ...{ onFault: (line) => faults.push(line), ...options },
    limits: { drainSeconds: FAILED_TEST_SECONDS, ...options.limits },
  });
  servers.add(server);
  if (engine) server.serve(engine);
  const url = `http://127.0.0.1:${server.port}`;
  const post = (fields: object, headers: Record<string, string> = {}, path = "/v1/completions") =>
    fetch(url + path, {
      ...{ method: "POST", headers: { "content-type": "application/json", ...headers } },
      body: JSON.stringify({ prompt: "hi", ...fields }),
    });
  const metric = async (name: string) => {
    const line = (await (await fetch(`${url}/metrics`)).text()).split("\n").find((each) => each.startsWith(`${name} `));
    return Number(line?.split(" ").at(-1));
  };
  return { server, url, post, metric, faults, end: () => end(server) };
}

export const errorOf = async (response: Response) => {
  const { error } = (await response.json()) as {
    error: { message: string; type: string; param: unknown; code: unknown };
  };
  return { status: response.status, ...error };
};

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (await holds()) return;
    await sleep(10);
  }
  assert.fail("it did not happen in 10 seconds");
}
