/** The weights of one policy version as files, and the body that brings them to a generator. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Worker } from "node:worker_threads";
import type { Engine } from "../engine/index.ts";
import type { MergeRequest } from "./merge-thread.ts";
import type { WeightsFile, WeightsKind, WeightsName } from "./protocol.ts";

export interface PublishedWeights extends WeightsName {
  readonly kind: WeightsKind;
  readonly folder: string;
  readonly files: readonly WeightsFile[];
}

/** Files that are sent. A generator already has the configuration and the tokenizer. */
const IS_WEIGHTS = /\.safetensors$|\.safetensors\.index\.json$|^adapter_config\.json$/;

/** The model and the dtype of full weights with the learner's adapter merged in. */
export type Merge = Pick<MergeRequest, "model" | "dtype">;

interface WriteOptions {
  engine: Pick<Engine, "savePolicy">;
  /** Folder of weights until every generator has them. */
  directory: string;
  /** Absent: the trained weights or adapter are sent as they are. */
  merge?: Merge | undefined;
  /** Aborts a merge. */
  signal: AbortSignal;
}

/**
 * Writes the learner's weights into the directory's folder for this policy version, and returns them.
 *
 * @throws ModelError for weights that do not fit the dtype; the reason of `signal`
 */
export async function writeWeights(
  { engine, directory, merge, signal }: WriteOptions,
  policyVersion: number,
): Promise<PublishedWeights> {
  const folder = join(directory, String(policyVersion));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  if (!merge) await engine.savePolicy(folder);
  else {
    const adapter = join(directory, "adapter");
    await mkdir(adapter, { recursive: true });
    await engine.savePolicy(adapter);
    await mergeInThread({ ...merge, adapter, out: folder }, signal);
    await rm(adapter, { recursive: true });
  }
  return weightsIn(folder, policyVersion);
}

/** Merges in a thread of its own: 3B takes minutes, in which leases and heartbeats must continue. */
async function mergeInThread(request: MergeRequest, signal: AbortSignal): Promise<void> {
  const thread = new Worker(new URL("./merge-thread.ts", import.meta.url), { workerData: request });
  try {
    await once(thread, "exit", { signal }); // rejects with the thread's error
  } catch (cause) {
    signal.throwIfAborted();
    throw cause;
  } finally {
    await thread.terminate();
  }
}

/** Returns the files of a folder that `Engine.savePolicy` wrote, and their digest. */
export async function weightsIn(folder: string, policyVersion: number): Promise<PublishedWeights> {
  const names = (await readdir(folder)).filter((name) => IS_WEIGHTS.test(name)).sort();
  const files = await Promise.all(names.map(async (name) => ({ name, bytes: (await stat(join(folder, name))).size })));
  const kind = names.includes("adapter_config.json") ? "adapter" : "full";
  const hash = createHash("sha256");
  await pipeline(bodyOf({ folder, files }), hash);
  return { policyVersion, kind, folder, files, digest: hash.digest("hex") };
}

/** Returns the bytes of all files, one after the other. */
export function bodyOf({ folder, files }: Pick<PublishedWeights, "folder" | "files">): Readable {
  return Readable.from(
    (async function* () {
      for (const { name } of files) yield* createReadStream(join(folder, name));
    })(),
    { objectMode: false },
  );
}
