/** Fetches of the quickstart policy from a server that stands for the hub. */
import assert from "node:assert/strict";
import fs from "node:fs";
import type { ServerResponse } from "node:http";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { fetchModel } from "./fetch-model.ts";
import type { HubServer } from "./hub-server.fixture.ts";
import type { TransferLimits } from "./limits.ts";

export const root = fs.mkdtempSync(path.join(os.tmpdir(), "fetch-model-"));
after(() => fs.rmSync(root, { recursive: true }));
export const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
export const WEIGHTS = fs.statSync(path.join(POLICY, "model.safetensors")).size;
const FAST = { firstWaitSeconds: 0.01, longestWaitSeconds: 0.02 };

export interface Wish {
  repo?: string;
  revision?: string;
  out?: string;
  limits?: Partial<TransferLimits>;
  env?: NodeJS.ProcessEnv;
}

let caches = 0;
/** Fetches from the server into a cache of its own; also returns the printed lines. */
export async function fetchFrom(
  server: HubServer | undefined,
  wish: Wish = {},
  cache = path.join(root, `cache ${caches++}`),
) {
  const lines: string[] = [];
  const { repo = "acme/model", revision = repo.includes("://") ? undefined : "main", out, limits, env } = wish;
  const fetched = await fetchModel({
    ...{ repo, revision, out, limits: { ...FAST, ...limits } },
    env: { LONGRUN_CACHE: cache, ...(server && { HF_ENDPOINT: server.endpoint }), ...env },
    output: { write: (text) => lines.push(text.trimEnd()) },
  });
  return { ...fetched, lines, cache };
}

export function sameAs(server: HubServer, folder: string, names: string[]): void {
  assert.deepEqual(fs.readdirSync(folder).sort(), [...names, "fetched.json"].sort());
  for (const name of names)
    assert.ok(fs.readFileSync(path.join(folder, name)).equals(server.files.get(name)!), `${name} differs`);
}

const NEEDED = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"];
export const ALL = [...NEEDED, "tokenizer_config.json"];

export const isStorage = (request: { url?: string | undefined }) => request.url!.startsWith("/model");

/** Sends `bytes` of the missing part and cuts the connection. */
export function cut(response: ServerResponse, body: Buffer, range: string | undefined, bytes: number): void {
  const start = Number(/\d+/.exec(range ?? "bytes=0-")![0]);
  const headers = { "content-length": body.length - start };
  if (start > 0)
    response.writeHead(206, { ...headers, "content-range": `bytes ${start}-${body.length - 1}/${body.length}` });
  else response.writeHead(200, headers);
  response.write(body.subarray(start, start + bytes), () => setTimeout(() => response.destroy(), 5));
}
