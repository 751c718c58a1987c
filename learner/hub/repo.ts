/** Selects the files of a repository that longrun needs, with the sizes and hashes that the hub's API lists. */
import { listFiles, modelInfo } from "@huggingface/hub";
import { TransferError } from "./errors.ts";
import type { Hub } from "./hub.ts";
import { isByteCount, isPlainName, type ModelServer, type RepoFile } from "./server.ts";
import { tooMuch } from "./transfer.ts";

export const COMMIT = /^[0-9a-f]{40}$/;

/** Returns the commit that a branch, tag or commit stands for. @throws TransferError */
export async function resolveCommit(hub: Hub): Promise<string> {
  const { endpoint, repo, revision } = hub.options;
  const { sha } = await hub.persist(endpoint, () =>
    asJson(endpoint, () =>
      modelInfo({ name: repo, revision, hubUrl: endpoint, additionalFields: ["sha"], fetch: hub.fetch }),
    ),
  );
  if (typeof sha !== "string" || !COMMIT.test(sha)) throw noHub(endpoint);
  return sha;
}

/** Returns the repository at one commit. */
export function atCommit(hub: Hub, commit: string): ModelServer {
  const { endpoint, repo } = hub.options;
  const urlOf = (name: string) => `${endpoint}/${repo}/resolve/${commit}/${encodeURIComponent(name)}`;
  return {
    repo,
    endpoint,
    commit,
    transfer: hub.options,
    list: () => listRoot(hub, commit),
    open: ({ name }, start) => hub.open(urlOf(name), start),
    explain: (cause) => hub.explain(cause, endpoint),
  };
}

async function listRoot(hub: Hub, commit: string): Promise<RepoFile[]> {
  const { endpoint, repo, limits } = hub.options;
  const entries = await hub.persist(endpoint, () =>
    asJson(endpoint, async () => {
      let pages = 0;
      const fetchPage: typeof hub.fetch = (input, init) => {
        if (++pages > limits.listPages) throw tooMuch(endpoint, `more than ${limits.listPages} pages of files`);
        return hub.fetch(input, init);
      };
      const all: unknown[] = [];
      for await (const entry of listFiles({ repo, revision: commit, hubUrl: endpoint, fetch: fetchPage }))
        all.push(entry);
      return all;
    }),
  );
  return entries.flatMap((entry) => parseEntry(entry) ?? raise(noHub(endpoint)));
}

/** Returns the file that an entry of the hub's list stands for; none for a folder; undefined for what is no such entry. */
function parseEntry(entry: unknown): RepoFile[] | undefined {
  const { type, path, size, oid, lfs } = Object(entry) as Record<string, unknown>;
  if (typeof type !== "string" || typeof path !== "string") return undefined;
  if (type !== "file" || !isPlainName(path)) return [];
  const { size: large, oid: sha256 } = Object(lfs) as Record<string, unknown>;
  const bytes = large ?? size;
  const hash = lfs ? sha256 : oid;
  const isHash = typeof hash === "string" && (lfs ? /^[0-9a-f]{64}$/ : COMMIT).test(hash);
  return isHash && isByteCount(bytes) ? [{ name: path, bytes, algorithm: lfs ? "sha256" : "git", hash }] : undefined;
}

const raise = (error: Error): never => {
  throw error;
};

/** The library's own errors concern answers that it cannot read. Errors of requests are TransferErrors already. */
async function asJson<Result>(endpoint: string, ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (cause) {
    const isRequest = cause instanceof TypeError && /^(fetch failed|terminated)$/.test(cause.message);
    const isFormat = cause instanceof SyntaxError || cause instanceof TypeError;
    throw isFormat && !isRequest ? noHub(endpoint, cause) : cause;
  }
}

const noHub = (endpoint: string, cause?: unknown) =>
  new TransferError(
    "input",
    `${endpoint} does not answer as the Hugging Face hub does; check HF_ENDPOINT, or unset it for https://huggingface.co`,
    { cause },
  );

/** Configuration, tokenizer, README and licence files beside the weights: no code, no pickles, nothing in subfolders. */
const BESIDE = [
  /^(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json$/,
  /^(merges\.txt|chat_template\.jinja)$/,
  /^(README|LICENSE|LICENCE|NOTICE|USE_POLICY)(\.(md|txt))?$/i,
];
const SINGLE = "model.safetensors";
export const INDEX = "model.safetensors.index.json";

/** Whether a fetch may need a file of this name. */
export const mayBeNeeded = (name: string): boolean =>
  /\.safetensors$/.test(name) || name === INDEX || BESIDE.some((form) => form.test(name));

/** Returns all files except the weights. @throws TransferError if longrun cannot train the model */
export function filesBeside(files: readonly RepoFile[], repo: string): RepoFile[] {
  const names = new Set(files.map(({ name }) => name));
  if (!names.has(SINGLE) && !names.has(INDEX)) {
    const others = files.map(({ name }) => name).filter((name) => /\.(bin|gguf|pth?|onnx|safetensors)$/.test(name));
    const has = others.length > 0 ? `, only ${others.slice(0, 3).join(", ")}` : "";
    throw new TransferError(
      "input",
      `${repo} has no ${SINGLE}${has}; longrun reads safetensors alone: fetch a model with it`,
    );
  }
  for (const name of ["config.json", "tokenizer.json"])
    if (!names.has(name))
      throw new TransferError("input", `${repo} has no ${name}, which training needs; fetch a model with it`);
  const index = names.has(SINGLE) ? [] : [INDEX];
  return files.filter(({ name }) => BESIDE.some((form) => form.test(name)) || index.includes(name));
}

/**
 * Returns the files of weights.
 * @param index content of the index, undefined where the weights are one file
 * @throws TransferError if the index names a missing file
 */
export function weightFiles(files: readonly RepoFile[], repo: string, index: unknown): RepoFile[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  if (index === undefined) return [byName.get(SINGLE)!];
  const map = (index as { weight_map?: unknown } | null)?.weight_map;
  const shards = typeof map === "object" && map !== null ? [...new Set(Object.values(map))] : [];
  const found = shards.map((shard) => byName.get(String(shard)));
  const missing = shards[found.indexOf(undefined)];
  if (missing !== undefined || shards.length === 0 || !shards.every((shard) => /\.safetensors$/.test(String(shard))))
    throw new TransferError(
      "input",
      `${repo}: ${INDEX} names ${missing ?? "no safetensors"}, which is not in the repository`,
    );
  return found as RepoFile[];
}
