/** Fetches a model that longrun can train from a server of the Hugging Face hub's API. The main flow of `longrun model fetch`. */
import { readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { MappedWeights, ModelError, readConfig, readEosIds, readTokenizer } from "../engine/index.ts";
import { cacheFolder } from "../tasks/cache-folder.ts";
import { bytesThere, downloadFile, isThere } from "./download.ts";
import { HubError } from "./errors.ts";
import { asDiskError, checkSpace, type FetchRecord, holdFolder, readRecord, writeRecord } from "./folder.ts";
import { Hub } from "./hub.ts";
import { HUB_LIMITS, type HubLimits } from "./limits.ts";
import { Progress, type ProgressOutput } from "./progress.ts";
import { COMMIT, filesBeside, INDEX, listRoot, type RepoFile, resolveCommit, weightFiles } from "./repo.ts";

export interface FetchOptions {
  /** OWNER/NAME. */
  repo: string;
  /** Branch, tag or commit. */
  revision: string;
  /** Left out: a folder of the commit's own in longrun's cache. */
  out: string | undefined;
  /** HF_TOKEN or HF_TOKEN_PATH, HF_ENDPOINT, and the cache folder. */
  env: NodeJS.ProcessEnv;
  /** Of progress and of what is tried again. */
  output: ProgressOutput;
  limits?: Partial<HubLimits>;
}

export interface FetchedModel {
  repo: string;
  revision: string;
  commit: string;
  /** Absolute path of the model folder. */
  folder: string;
  /** Of all files. */
  bytes: number;
  /** That came over the network now. */
  fetchedBytes: number;
}

const DEFAULT_ENDPOINT = "https://huggingface.co";

/** @throws HubError; what has come stays, and the same call goes on from there */
export async function fetchModel(options: FetchOptions): Promise<FetchedModel> {
  const { repo, revision, output } = options;
  const progress = new Progress(output, repo);
  const stop = new AbortController();
  const hub = openHub(options, stop.signal, (line) => progress.say(line));
  try {
    const commit = knownCommit(options) ?? (await resolveCommit(hub));
    const folder = resolve(options.out ?? cachedFolder(options, commit));
    await using _ = await holdFolder(folder, (line) => progress.say(line));
    const earlier = readRecord(folder);
    if (!earlier?.complete || !earlier.files.every((file) => isThere(folder, file)))
      await fillFolder(hub, folder, { repo, revision, commit }, { stop, progress, isNew: !earlier });
    const { files } = readRecord(folder)!;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return { repo, revision, commit, folder, bytes, fetchedBytes: progress.come };
  } finally {
    progress.clear();
  }
}

/** Fetches what is missing: first what says whether longrun can train the model, then the weights. */
async function fillFolder(
  hub: Hub,
  folder: string,
  source: Pick<FetchRecord, "repo" | "revision" | "commit">,
  { stop, progress, isNew }: { stop: AbortController; progress: Progress; isNew: boolean },
): Promise<void> {
  const { repo, commit } = source;
  const record = { ...source, endpoint: hub.options.endpoint };
  const listed = await listRoot(hub, commit);
  const beside = filesBeside(listed, repo);
  const fetchAll = async (files: RepoFile[]): Promise<void> => {
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const there = files.reduce((sum, file) => sum + bytesThere(folder, file), 0);
    checkSpace(folder, bytes - there, `${repo} at ${commit}`);
    progress.expect(bytes, there);
    await sideBySide(files, hub.options.limits.filesAtOnce, stop, (file) =>
      downloadFile(hub, commit, file, folder, (count) => progress.count(count)),
    );
  };
  try {
    writeRecord(folder, { ...record, complete: false, files: [] });
    await fetchAll(beside);
    checkTrainable(folder, repo, isNew);
    const index = beside.find(({ name }) => name === INDEX);
    const weights = weightFiles(listed, repo, index && parseIndex(join(folder, INDEX), repo));
    await fetchAll(weights);
    new MappedWeights(folder); // its headers say whether the weights are the config's
    writeRecord(folder, { ...record, complete: true, files: [...beside, ...weights] });
  } catch (cause) {
    throw asDiskError(cause, folder);
  }
}

/** @throws HubError naming the field that longrun cannot train; a folder that is new goes again */
function checkTrainable(folder: string, repo: string, isNew: boolean): void {
  try {
    readConfig(folder);
    readTokenizer(folder);
    readEosIds(folder);
  } catch (cause) {
    if (!(cause instanceof ModelError)) throw cause;
    if (isNew) rmSync(folder, { recursive: true, force: true });
    throw new HubError("input", `longrun cannot train ${repo}: ${cause.message.replaceAll(`${folder}/`, "")}`, {
      cause,
    });
  }
}

function parseIndex(path: string, repo: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new HubError("input", `${repo}: ${INDEX} is no JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Does `work` for all, `most` at once. The first error stops the others and is thrown when they have ended. */
async function sideBySide<Item>(
  items: readonly Item[],
  most: number,
  stop: AbortController,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && !stop.signal.aborted; item = waiting.shift())
      await work(item).catch((error) => stop.abort(error));
  };
  await Promise.all(Array.from({ length: most }, worker));
  stop.signal.throwIfAborted();
}

/**
 * Returns the commit where asking the hub is not needed: it was given, or the folder of an earlier fetch names it. A
 * branch that moves on so never changes a model that is there, or half there, and a whole one needs no network.
 */
function knownCommit({ repo, revision, out }: FetchOptions): string | undefined {
  if (out === undefined) return COMMIT.test(revision) ? revision : undefined;
  const record = readRecord(resolve(out));
  if (!record) return COMMIT.test(revision) ? revision : undefined;
  if (record.repo === repo && (record.revision === revision || record.commit === revision)) return record.commit;
  throw new HubError(
    "input",
    `--out ${out} has ${record.repo} at ${record.revision} (${record.commit}); give a new or empty folder`,
  );
}

const cachedFolder = ({ repo, env }: FetchOptions, commit: string): string =>
  join(cacheFolder(env), "models", ...repo.split("/"), commit);

function openHub(options: FetchOptions, signal: AbortSignal, say: (line: string) => void): Hub {
  const { repo, revision, env } = options;
  const name = /^[A-Za-z0-9_][\w.-]{0,95}$/;
  const parts = repo.split("/");
  if (parts.length !== 2 || !parts.every((part) => name.test(part) && !part.includes("..")))
    throw new HubError(
      "input",
      `${repo} is no name of a repository; give OWNER/NAME, such as Qwen/Qwen2.5-3B-Instruct`,
    );
  if (!/^[\w][\w./-]{0,199}$/.test(revision) || revision.includes(".."))
    throw new HubError("input", `--revision is ${revision}; give a branch, tag or commit`);
  const limits = { ...HUB_LIMITS, ...options.limits };
  return new Hub({ endpoint: endpointOf(env), repo, revision, token: tokenOf(env), limits, env, signal, say });
}

function endpointOf({ HF_ENDPOINT }: NodeJS.ProcessEnv): string {
  const endpoint = (HF_ENDPOINT || DEFAULT_ENDPOINT).replace(/\/+$/, "");
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (isHttp && url.username === "" && url.search === "") return endpoint;
  throw new HubError("input", `HF_ENDPOINT is not an address such as ${DEFAULT_ENDPOINT}; correct or unset it`);
}

/** The token itself, or a file with it. No message ever has it. */
function tokenOf({ HF_TOKEN, HF_TOKEN_PATH }: NodeJS.ProcessEnv): string | undefined {
  let token = HF_TOKEN;
  if (!token && HF_TOKEN_PATH)
    try {
      token = readFileSync(HF_TOKEN_PATH, "utf8");
    } catch (cause) {
      throw new HubError("input", `HF_TOKEN_PATH: cannot read the token: ${(cause as Error).message}`, { cause });
    }
  token = token?.trim();
  if (!token) return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new HubError("input", "HF_TOKEN has characters that no token has; copy it anew");
}
