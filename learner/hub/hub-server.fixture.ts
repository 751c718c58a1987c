/**
 * A server with the part of the Hugging Face hub's API that a fetch uses, and with its storage at another origin, as of November 2026:
 * `/api/models/ID/revision/REV`, `/api/models/ID/tree/REV` in pages, `/ID/resolve/REV/FILE`, which redirects large files to a signed
 * address.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";
/** The hub stores files of at least this size outside of git; the real hub decides by patterns of names. */
const LARGE_BYTES = 5000;
const PAGE = 4;

/** The server's action instead of an answer; returns false if the fault does not apply to the request. */
export type Fault = (request: IncomingMessage, response: ServerResponse, body: Buffer) => boolean;

export interface Asked {
  path: string;
  authorization: string | undefined;
  range: string | undefined;
}

export class HubServer implements AsyncDisposable {
  files = new Map<string, Buffer>();
  /** Recorded requests to the hub and to its storage. */
  readonly asked: Asked[] = [];
  readonly stored: Asked[] = [];
  /** Tried in order for each request; the hub's requests have a path that begins with `/api/` or the repository. */
  faults: Fault[] = [];
  /** Requests without this token are refused. */
  token: string | undefined;
  gated = false;
  revisions: Record<string, string> = { main: COMMIT, "refs/pr/1": "f".repeat(40) };
  readonly #hub: Server;
  readonly #storage: Server;

  constructor() {
    this.#hub = createServer((request, response) => this.#answer(request, response));
    this.#storage = createServer((request, response) => {
      this.stored.push(seen(request));
      const name = decodeURIComponent(new URL(request.url!, "http://storage").pathname.slice(1));
      this.#send(request, response, this.files.get(name)!);
    });
  }

  static async of(folder: string | undefined, extra: Record<string, string | Buffer> = {}): Promise<HubServer> {
    const server = new HubServer();
    if (folder) for (const name of readdirSync(folder)) server.files.set(name, readFileSync(join(folder, name)));
    for (const [name, content] of Object.entries(extra)) server.files.set(name, Buffer.from(content));
    for (const each of [server.#hub, server.#storage])
      await new Promise<void>((resolve) => each.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  get storage(): string {
    return `http://127.0.0.1:${(this.#storage.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): unknown {
    this.asked.push(seen(request));
    const url = new URL(request.url!, this.endpoint);
    const api = /^\/api\/models\/(acme\/[\w.-]+)\/(revision|tree)\/(.+)$/.exec(url.pathname);
    const resolve = /^\/(acme\/[\w.-]+)\/resolve\/([^/]+)\/([^/]+)$/.exec(url.pathname);
    const [, repo] = api ?? resolve ?? [];
    const isKnown = !this.token || request.headers.authorization === `Bearer ${this.token}`;
    if (request.headers.authorization && this.token && !isKnown)
      return refuse(response, 401, "", "Invalid credentials in Authorization header");
    if (repo !== "acme/model")
      return refuse(response, isKnown && this.token ? 404 : 401, "RepoNotFound", "Repository not found");
    const revision = decodeURIComponent(api?.[3] ?? resolve![2]!);
    const commit =
      this.revisions[revision] ?? (Object.values(this.revisions).includes(revision) ? revision : undefined);
    if (!commit) return refuse(response, 404, "RevisionNotFound", `Invalid rev id: ${revision}`);
    if (api?.[2] === "revision") {
      const model = { _id: "65", id: repo, private: false, gated: this.gated && "auto", downloads: 1, likes: 1 };
      return this.#send(request, response, json({ ...model, lastModified: "2026-11-01T00:00:00.000Z", sha: commit }));
    }
    if (api) return this.#tree(request, response, url);
    if (this.gated && !(isKnown && this.token))
      return refuse(
        response,
        request.headers.authorization ? 403 : 401,
        "GatedRepo",
        `Access to model ${repo} is restricted.`,
      );
    const name = decodeURIComponent(resolve![3]!);
    const body = this.files.get(name);
    if (!body) return refuse(response, 404, "EntryNotFound", "Entry not found");
    if (body.length < LARGE_BYTES) return this.#send(request, response, body);
    const location = `${this.storage}/${encodeURIComponent(name)}?X-Signature=abc`;
    if (!this.faults.some((fault) => fault(request, response, Buffer.alloc(0))))
      response.writeHead(302, { location, "x-linked-etag": sha256(body), "x-repo-commit": commit }).end();
  }

  /** Lists folders and files, `PAGE` at a time. */
  #tree(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const entries = [
      { type: "directory", oid: "d".repeat(40), size: 0, path: "original" },
      ...[...this.files].map(([path, body]) => {
        const large = body.length >= LARGE_BYTES;
        const lfs = { oid: sha256(body), size: body.length, pointerSize: 135 };
        const oid = createHash("sha1").update(`blob ${body.length}\0`).update(body).digest("hex");
        return { type: "file", oid: large ? "e".repeat(40) : oid, size: body.length, path, ...(large && { lfs }) };
      }),
    ];
    const from = Number(url.searchParams.get("cursor") ?? 0);
    url.searchParams.set("cursor", String(from + PAGE));
    const next: Record<string, string> = from + PAGE < entries.length ? { link: `<${url}>; rel="next"` } : {};
    this.#send(request, response, json(entries.slice(from, from + PAGE)), next);
  }

  #send(request: IncomingMessage, response: ServerResponse, body: Buffer, headers: Record<string, string> = {}): void {
    if (this.faults.some((fault) => fault(request, response, body))) return;
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (start === 0) return void response.writeHead(200, { "content-length": body.length, ...headers }).end(body);
    if (start >= body.length) return void response.writeHead(416, { "content-range": `bytes */${body.length}` }).end();
    const range = `bytes ${start}-${body.length - 1}/${body.length}`;
    response
      .writeHead(206, { "content-length": body.length - start, "content-range": range })
      .end(body.subarray(start));
  }
}

const seen = ({ url, headers }: IncomingMessage): Asked => ({
  ...{ path: url!, authorization: headers.authorization, range: headers.range },
});
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const sha256 = (body: Buffer): string => createHash("sha256").update(body).digest("hex");

export function refuse(
  response: ServerResponse,
  status: number,
  code = "",
  message = "",
  headers: Record<string, string> = {},
): void {
  const said = { ...(code && { "x-error-code": code }), ...(message && { "x-error-message": message }), ...headers };
  response.writeHead(status, { "content-type": "application/json", ...said }).end(JSON.stringify({ error: message }));
}
