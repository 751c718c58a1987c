/** Fetches a model that longrun can train from the Hugging Face hub, from S3 or from a registry. The main flow of `longrun model fetch`. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { MappedWeights, ModelError, readConfig, readEosIds, readTokenizer } from "../engine/index.ts";
import { bytesThere, downloadFile, isThere } from "./download.ts";
import { TransferError } from "./errors.ts";
import { asDiskError, checkSpace, type FetchRecord, holdFolder, readRecord, writeRecord } from "./folder.ts";
import { Hub } from "./hub.ts";
import { TRANSFER_LIMITS, type TransferLimits } from "./limits.ts";
import { isOci, parseOciUrl } from "./oci-url.ts";
import { Progress, type ProgressOutput } from "./progress.ts";
import { atCommit, COMMIT, filesBeside, INDEX, resolveCommit, weightFiles } from "./repo.ts";
import { isS3, parseS3Url } from "./s3-url.ts";
import type { ModelServer, RepoFile } from "./server.ts";
import { sideBySide, type Transfer } from "./transfer.ts";

interface FetchOptions {
  /** OWNER/NAME of the hub, s3://BUCKET/PREFIX, or oci://HOST/REPOSITORY:TAG. */
  repo: string;
  /** Branch, tag or commit of the hub; absent: main. The others have none. */
  revision?: string | undefined;
  /** Absent: a folder for the commit in longrun's cache. */
  out: string | undefined;
  /** HF_TOKEN or HF_TOKEN_PATH, HF_ENDPOINT; the variables of every S3 client (AWS_…); and the cache folder. */
  env: NodeJS.ProcessEnv;
  /** Shows progress and retries. */
  output: ProgressOutput;
  limits?: Partial<TransferLimits>;
}

interface FetchedModel {
  repo: string;
  /** A branch, tag or commit of the hub. */
  revision?: string | undefined;
  /** The hub's commit; S3: a digest of the files' names, sizes and hashes; registry: the beginning of the manifest's digest. */
  commit: string;
  /** Absolute path of the model folder. */
  folder: string;
  /** Size of all files. */
  bytes: number;
  /** Bytes that this call downloaded. */
  fetchedBytes: number;
}

const DEFAULT_ENDPOINT = "https://huggingface.co";

/** A repository or bucket, with all its versions. */
interface Origin {
  repo: string;
  revision?: string;
  /** Returns the model at `commit`; without a commit it asks the server. @throws TransferError */
  at(commit: string | undefined): Promise<ModelServer>;
  /** Whether older versions can still be fetched. S3 has only the newest. */
  keepsVersions: boolean;
  /** Paths of the folders in the cache, one for each version. */
  cached: string[];
}

/** @throws TransferError; fetched bytes stay, and the same call continues from there */
export async function fetchModel(options: FetchOptions): Promise<FetchedModel> {
  const { repo, output, env } = options;
  const progress = new Progress(output, repo);
  const stop = new AbortController();
  const limits = { ...TRANSFER_LIMITS, ...options.limits };
  const transfer = { limits, signal: stop.signal, say: (line: string) => progress.say(line) };
  try {
    const isPlaced = isS3(repo) || isOci(repo);
    const origin = isPlaced ? placedOrigin(options, transfer) : hubOrigin(options, transfer);
    const known = knownCommit(options, origin);
    const server = known?.isWhole ? undefined : await origin.at(known?.commit);
    const commit = server?.commit ?? known!.commit;
    const folder = resolve(options.out ?? join(cacheFolder(env), "models", ...origin.cached, commit));
    await using _ = await holdFolder(folder, transfer.say);
    let earlier = readRecord(folder);
    if (earlier && earlier.commit !== commit) {
      transfer.say(`${repo} is another one than ${folder} was begun with; fetching all of it`);
      emptyFolder(folder);
      earlier = undefined;
    }
    const { revision } = origin;
    if (!isWhole(earlier, folder))
      await fillFolder(server ?? (await origin.at(commit)), folder, revision, { stop, progress, isNew: !earlier });
    const { files } = readRecord(folder)!;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return { repo, ...(revision !== undefined && { revision }), commit, folder, bytes, fetchedBytes: progress.come };
  } finally {
    progress.clear();
  }
}

const isWhole = (record: FetchRecord | undefined, folder: string): boolean =>
  record?.complete === true && record.files.every((file) => isThere(folder, file));

function emptyFolder(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Fetches missing files: first the files that show whether longrun can train the model, then the weights. */
async function fillFolder(
  server: ModelServer,
  folder: string,
  revision: string | undefined,
  { stop, progress, isNew }: { stop: AbortController; progress: Progress; isNew: boolean },
): Promise<void> {
  const { repo, commit, endpoint, transfer } = server;
  const record = { repo, ...(revision !== undefined && { revision }), commit, endpoint };
  const listed = await server.list();
  const beside = filesBeside(listed, repo);
  const fetchAll = async (files: RepoFile[]): Promise<void> => {
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    const presentBytes = files.reduce((sum, file) => sum + bytesThere(folder, file), 0);
    checkSpace(folder, bytes - presentBytes, `${repo} at ${commit}`);
    progress.expect(bytes, presentBytes);
    await sideBySide(files, transfer.limits.filesAtOnce, stop, (file) =>
      downloadFile(server, file, folder, (count) => progress.count(count)),
    );
  };
  try {
    writeRecord(folder, { ...record, complete: false, files: [] });
    await fetchAll(beside);
    checkTrainable(folder, repo, isNew);
    const index = beside.find(({ name }) => name === INDEX);
    const weights = weightFiles(listed, repo, index && parseIndex(join(folder, INDEX), repo));
    await fetchAll(weights);
    new MappedWeights(folder); // checks that the weights fit config.json
    writeRecord(folder, { ...record, complete: true, files: [...beside, ...weights] });
  } catch (cause) {
    throw asDiskError(cause, folder);
  }
}

/** @throws TransferError naming the field that longrun cannot train; a new folder is removed */
function checkTrainable(folder: string, repo: string, isNew: boolean): void {
  try {
    readConfig(folder);
    readTokenizer(folder);
    readEosIds(folder);
  } catch (cause) {
    if (!(cause instanceof ModelError)) throw cause;
    if (isNew) rmSync(folder, { recursive: true, force: true });
    throw new TransferError("input", `longrun cannot train ${repo}: ${cause.message.replaceAll(`${folder}/`, "")}`, {
      cause,
    });
  }
}

function parseIndex(path: string, repo: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new TransferError("input", `${repo}: ${INDEX} is no JSON: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Returns the commit if it is known without the server: it was given, or the folder of an earlier fetch names it. So a branch that moves
 * never changes a complete or partial model, and a complete model needs no network.
 */
function knownCommit(
  { out }: FetchOptions,
  { repo, revision, keepsVersions }: Origin,
): { commit: string; isWhole: boolean } | undefined {
  const given = COMMIT.test(revision ?? "") ? { commit: revision!, isWhole: false } : undefined;
  const folder = out === undefined ? undefined : resolve(out);
  const record = folder === undefined ? undefined : readRecord(folder);
  if (!record) return given;
  if (record.repo !== repo || (record.revision !== revision && record.commit !== revision)) {
    const at = record.revision === undefined ? record.commit : `${record.revision} (${record.commit})`;
    throw new TransferError("input", `--out ${out} has ${record.repo} at ${at}; give a new or empty folder`);
  }
  const whole = isWhole(record, folder!);
  return whole || keepsVersions ? { commit: record.commit, isWhole: whole } : undefined;
}

/** Returns the origin for S3 and registries, which hold one version at a time, named by the address. Loads the client on demand. */
function placedOrigin({ repo, revision, env }: FetchOptions, transfer: Transfer): Origin {
  if (revision !== undefined)
    throw new TransferError("input", `--revision is ${revision}, and ${repo} has no revisions; leave it out`);
  if (isOci(repo)) {
    const { host, repository } = parseOciUrl(repo);
    const at = async () => (await import("./oci-model.ts")).openOciModel(repo, env, transfer);
    return { repo, at, keepsVersions: false, cached: ["oci", host.replace(":", "_"), ...repository.split("/")] };
  }
  const { bucket, prefix } = parseS3Url(repo);
  const at = async () => (await import("./s3-model.ts")).openS3Model(repo, env, transfer);
  return { repo, at, keepsVersions: false, cached: ["s3", bucket, ...prefix.split("/").filter((it) => it !== "")] };
}

function hubOrigin({ repo, revision = "main", env }: FetchOptions, transfer: Transfer): Origin {
  const name = /^[A-Za-z0-9_][\w.-]{0,95}$/;
  const parts = repo.split("/");
  if (parts.length !== 2 || !parts.every((part) => name.test(part) && !part.includes("..")))
    throw new TransferError(
      "input",
      `${repo} is no name of a repository; give OWNER/NAME, such as Qwen/Qwen2.5-3B-Instruct, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY:TAG`,
    );
  if (!/^[\w][\w./-]{0,199}$/.test(revision) || revision.includes(".."))
    throw new TransferError("input", `--revision is ${revision}; give a branch, tag or commit`);
  const hub = new Hub({ ...transfer, endpoint: endpointOf(env), repo, revision, token: tokenOf(env), env });
  return {
    repo,
    revision,
    keepsVersions: true,
    cached: parts,
    at: async (commit) => atCommit(hub, commit ?? (await resolveCommit(hub))),
  };
}

function endpointOf({ HF_ENDPOINT }: NodeJS.ProcessEnv): string {
  const endpoint = (HF_ENDPOINT || DEFAULT_ENDPOINT).replace(/\/+$/, "");
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const isHttp = url?.protocol === "https:" || url?.protocol === "http:";
  if (isHttp && url.username === "" && url.search === "") return endpoint;
  throw new TransferError("input", `HF_ENDPOINT is not an address such as ${DEFAULT_ENDPOINT}; correct or unset it`);
}

/** Returns the token, from the variable or its file. No message contains it. */
function tokenOf({ HF_TOKEN, HF_TOKEN_PATH }: NodeJS.ProcessEnv): string | undefined {
  let token = HF_TOKEN;
  if (!token && HF_TOKEN_PATH)
    try {
      token = readFileSync(HF_TOKEN_PATH, "utf8");
    } catch (cause) {
      throw new TransferError("input", `HF_TOKEN_PATH: cannot read the token: ${(cause as Error).message}`, { cause });
    }
  token = token?.trim();
  if (!token) return undefined;
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new TransferError("input", "HF_TOKEN has characters that no token has; copy it anew");
}
