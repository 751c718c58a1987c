/** The weights of one policy version as files, and the body that brings them to a generator. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Engine } from "../engine/index.ts";
import type { WeightsFile, WeightsKind, WeightsName } from "./protocol.ts";

export interface PublishedWeights extends WeightsName {
  readonly kind: WeightsKind;
  readonly folder: string;
  readonly files: readonly WeightsFile[];
}

/** A generator has the configuration and the tokenizer already. */
const IS_WEIGHTS = /\.safetensors$|\.safetensors\.index\.json$|^adapter_config\.json$/;

/**
 * Writes the learner's weights into the directory's folder for this policy version, and returns them.
 *
 * @param before the version before; undefined: none, and the directory has only what a killed learner left
 */
export async function writeWeights(
  engine: Pick<Engine, "savePolicy">,
  directory: string,
  policyVersion: number,
  before: PublishedWeights | undefined,
): Promise<PublishedWeights> {
  const folder = join(directory, String(policyVersion));
  // what a learner that was killed has left would lie on the volume until the run ends
  await rm(before ? folder : directory, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await engine.savePolicy(folder);
  return weightsIn(folder, policyVersion);
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
