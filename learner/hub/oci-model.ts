/**
 * A model folder in a registry: an OCI artifact whose layers are files, as `oras push` makes it. Their digests are their SHA-256.
 * This is a client of the registry's HTTP API: https://github.com/opencontainers/distribution-spec.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { TransferError } from "./errors.ts";
import { type OciPlace, parseOciUrl } from "./oci-url.ts";
import { failureOf, retryAfterSeconds } from "./refusals.ts";
import { isByteCount, isPlainName, type ModelServer, type RepoFile } from "./server.ts";
import { openAnswer, persist, readText, type Transfer } from "./transfer.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
/** The annotation in which `oras` writes the name of a layer's file. */
const TITLE = "org.opencontainers.image.title";

/** @throws TransferError */
export async function openOciModel(url: string, env: NodeJS.ProcessEnv, transfer: Transfer): Promise<ModelServer> {
  const registry = new Registry(url, parseOciUrl(url), env, transfer);
  const { text, digest } = await registry.manifest();
  const files = filesOf(text, url);
  return {
    repo: url,
    endpoint: registry.place.origin,
    transfer,
    commit: digest.slice(0, 40),
    list: async () => files,
    open: ({ hash }, start) =>
      openAnswer(transfer, async (signal) => {
        const headers = { "accept-encoding": "identity", ...(start > 0 && { range: `bytes=${start}-` }) };
        const response = await registry.send(`blobs/sha256:${hash}`, { headers, signal });
        const range = response.headers.get("content-range") ?? undefined;
        return { status: response.status, range, body: response.body ?? Readable.from([]) };
      }),
    explain: (cause) => registry.explain(cause),
  };
}

/** Returns the layers that are files at the root. @throws TransferError for an image, or an index of several */
function filesOf(text: string, url: string): RepoFile[] {
  let layers: unknown;
  try {
    ({ layers } = Object(JSON.parse(text)) as { layers?: unknown });
  } catch (cause) {
    throw new TransferError("input", `${url} has a manifest that is no JSON; give another one`, { cause });
  }
  const files = (Array.isArray(layers) ? layers : []).flatMap((layer: unknown): RepoFile[] => {
    const { digest, size, annotations } = Object(layer) as Record<string, unknown>;
    const name = (Object(annotations) as Record<string, unknown>)[TITLE];
    const [, hash] = /^sha256:([0-9a-f]{64})$/.exec(String(digest)) ?? [];
    if (!hash || !isPlainName(name) || !isByteCount(size)) return [];
    return [{ name, bytes: size, algorithm: "sha256", hash }];
  });
  if (files.length > 0) return files;
  throw new TransferError(
    "input",
    `${url} has no files: it is an image, or an index of several; push the model folder's files as an artifact: oras push REFERENCE *`,
  );
}

class Registry {
  readonly place: OciPlace;
  readonly #url: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #transfer: Transfer;
  /** `Authorization` of the requests; undefined until the registry asks for one. */
  #authorization: string | undefined;

  constructor(url: string, place: OciPlace, env: NodeJS.ProcessEnv, transfer: Transfer) {
    this.#url = url;
    this.place = place;
    this.#env = env;
    this.#transfer = transfer;
  }

  /** Returns the manifest and its SHA-256, checked against the requested one, if any. */
  async manifest(): Promise<{ text: string; digest: string }> {
    const { version } = this.place;
    return this.#persist(async (signal) => {
      const response = await this.send(`manifests/${version}`, { headers: { accept: MANIFEST }, signal });
      const text = await readText(response.body, this.place.origin, this.#transfer.limits);
      const digest = createHash("sha256").update(text).digest("hex");
      if (version.startsWith("sha256:") && version !== `sha256:${digest}`)
        throw new TransferError("hash", `${this.#url} came with another digest, ${digest}; try again`, { again: {} });
      return { text, digest };
    });
  }

  /** Sends a request about the repository. A redirect to another host goes without the credentials: `fetch` drops them. */
  async send(path: string, init: { headers: Record<string, string>; signal: AbortSignal }): Promise<Response> {
    const { origin, repository } = this.place;
    const ask = () => {
      const headers = { ...init.headers, ...(this.#authorization && { authorization: this.#authorization }) };
      return fetch(`${origin}/v2/${repository}/${path}`, { ...init, headers });
    };
    let response = await ask();
    if (response.status === 401) {
      // Tokens expire within minutes, in the middle of a model.
      await response.body?.cancel();
      this.#authorization = await this.#authorize(response.headers.get("www-authenticate") ?? "", init.signal);
      response = await ask();
    }
    if (response.ok || response.status === 416) return response;
    await response.body?.cancel();
    throw this.#refusalOf(response);
  }

  explain(cause: unknown): TransferError {
    return failureOf(cause, this.place.origin, this.#env, "check the host's name");
  }

  #persist<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const { limits, signal } = this.#transfer;
    const ask = () => work(AbortSignal.any([signal, AbortSignal.timeout(limits.answerSeconds * 1000)]));
    return persist(this.#transfer, (cause) => this.explain(cause), ask);
  }

  /** Returns the credentials that the registry asks for: a token of its server, or name and password. */
  async #authorize(challenge: string, signal: AbortSignal): Promise<string | undefined> {
    const { host, repository } = this.place;
    const auth = dockerAuth(host, this.#env);
    const basic = auth && `Basic ${auth}`;
    if (!/^bearer /i.test(challenge)) return basic;
    const fields = Object.fromEntries(
      [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
    if (!URL.canParse(fields.realm ?? "")) return basic;
    const realm = new URL(fields.realm!);
    if (fields.service) realm.searchParams.set("service", fields.service);
    realm.searchParams.set("scope", fields.scope ?? `repository:${repository}:pull`);
    const response = await fetch(realm, { signal, headers: basic ? { authorization: basic } : {} });
    if (!response.ok) throw this.#refusalOf(response);
    const given = parseToken(await readText(response.body, realm.origin, this.#transfer.limits));
    if (given === undefined)
      throw new TransferError(
        "input",
        `${realm.origin} gives no token for ${this.#url}, as registries do; check the host`,
      );
    return `Bearer ${given}`;
  }

  #refusalOf({ status, headers }: Response): TransferError {
    const { host, origin } = this.place;
    if (status === 408 || status === 429 || status >= 500)
      return new TransferError("network", `${origin} answers ${status}`, {
        again: { afterSeconds: retryAfterSeconds(headers) },
      });
    if (status === 404) return new TransferError("input", `${origin} has no ${this.#url}; check the name and the tag`);
    if (status !== 401 && status !== 403) return new TransferError("network", `${origin} answers ${status}`);
    const remedy = dockerAuth(host, this.#env)
      ? "give the account in DOCKER_CONFIG the right to pull it"
      : `log in to ${host} (oras login, docker login), or name the folder of config.json in DOCKER_CONFIG`;
    return new TransferError("access", `${origin} refuses ${this.#url}: ${status}; ${remedy}`);
  }
}

/** Returns the token in an answer of a registry's server of tokens, undefined if there is none. */
function parseToken(text: string): string | undefined {
  try {
    const { token, access_token } = Object(JSON.parse(text)) as Record<string, unknown>;
    const given = token ?? access_token;
    return typeof given === "string" && /^[\x21-\x7e]+$/.test(given) ? given : undefined;
  } catch {
    return undefined;
  }
}

/** Returns name and password of a host, as the clients of registries keep them: base64 of NAME:PASSWORD. */
function dockerAuth(host: string, { DOCKER_CONFIG, HOME }: NodeJS.ProcessEnv): string | undefined {
  const path = join(DOCKER_CONFIG || join(HOME || homedir(), ".docker"), "config.json");
  if (!existsSync(path)) return undefined;
  try {
    const { auths } = Object(JSON.parse(readFileSync(path, "utf8"))) as { auths?: Record<string, { auth?: unknown }> };
    const auth = auths?.[host]?.auth;
    return typeof auth === "string" ? auth : undefined;
  } catch (cause) {
    throw new TransferError("input", `${path} cannot be read as JSON; correct it`, { cause });
  }
}
