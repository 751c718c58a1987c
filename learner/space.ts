/** Checks whether the disk of a run folder has room for the run's checkpoints and the generators' weights, before anything is loaded. */
import { existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { volumeRemedy } from "../proto/volume.ts";
import { size } from "./engine/index.ts";
import { StoreError } from "./store/errors.ts";

export interface Space {
  totalBytes: number;
  /** bytes that a process without privileges may write once the start has removed the checkpoints that are not kept */
  freeBytes: number;
  /** bytes of the kept checkpoints: each is removed only after a newer one is written */
  checkpointBytes: number;
}

interface SpaceOptions {
  /** the run folder */
  directory: string;
  kept?: readonly string[];
  inPod: boolean;
  sentBytes?: number;
}

/** A new checkpoint is whole before an older one is removed. */
const LEAST_CHECKPOINTS = 2;
/** Versions of the weights for generators that are on the disk at once. */
const SENT_VERSIONS = 2;
/** Factor on the checkpoints' bytes: the store, the report and the file system itself need the rest. */
const SURPLUS = 1.05;

/**
 * Returns a warning where the disk has room for fewer checkpoints than `learner.checkpoint.keepLast` and the one that is being written.
 *
 * @param checkpointBytes of one checkpoint, from the memory plan
 * @param kept paths of the checkpoints that the start keeps, relative to the run folder
 * @param inPod whether the disk is the run's volume, which the controller can enlarge
 * @param sentBytes bytes of one version of full weights for generators; 0 for adapters
 * @throws StoreError `diskFull` unless two checkpoints have room, and the next one beside the kept ones; one line with the number and the
 *   remedy
 */
export function checkSpace(
  checkpointBytes: number,
  { learner }: Pick<TrainingRunSpec, "learner">,
  { directory, kept = [], inPod, sentBytes = 0 }: SpaceOptions,
  { totalBytes, freeBytes, checkpointBytes: held }: Space = spaceOf(directory, kept),
): string | undefined {
  const sent = SENT_VERSIONS * sentBytes;
  const room = freeBytes + held - sent;
  const { keepLast } = learner.checkpoint;
  const wanted = (keepLast + 1) * checkpointBytes;
  const nextFits = room - held >= checkpointBytes;
  if (room >= wanted && nextFits) return undefined;
  const beside = sent > 0 ? ` beside two versions of weights for generators, ${size(sent)}` : "";
  const each = `a checkpoint of this run takes ${size(checkpointBytes)}, and ${directory} has room for ${size(Math.max(0, room))}${beside}`;
  const needed = `learner.checkpoint.keepLast ${keepLast} and the next one need ${size(wanted)}`;
  const enough = volumeRemedy(SURPLUS * (totalBytes - room + wanted));
  if (room >= LEAST_CHECKPOINTS * checkpointBytes) {
    const most = Math.floor(room / checkpointBytes) - 1;
    const remedy = inPod
      ? `${most}, or ${enough}`
      : `${most} (--set learner.checkpoint.keepLast=${most}), or free space`;
    const warning = `${each}: ${needed}; lower it to ${remedy}`;
    if (nextFits) return warning;
    throw new StoreError("diskFull", warning);
  }
  if (inPod) throw new StoreError("diskFull", `${each}: two do not fit; ${enough} (${needed})`);
  const free = `free ${size(LEAST_CHECKPOINTS * checkpointBytes - room)}, choose a folder on another disk with --out`;
  const smaller = `model.adaptation.type: LoRA${sent > 0 ? " and generation.weightSync: Adapter" : ""}`;
  throw new StoreError("diskFull", `${each}: two do not fit; ${free}, or train with ${smaller}`);
}

function spaceOf(directory: string, kept: readonly string[]): Space {
  const { blocks, bavail, bsize } = statfsSync(directory);
  const checkpointBytes = kept.reduce((total, path) => total + bytesBelow(join(directory, path)), 0);
  const removedBytes = bytesBelow(join(directory, "checkpoints")) - checkpointBytes;
  return { totalBytes: blocks * bsize, freeBytes: bavail * bsize + removedBytes, checkpointBytes };
}

function bytesBelow(folder: string): number {
  if (!existsSync(folder)) return 0;
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((total, { parentPath, name }) => total + statSync(join(parentPath, name)).size, 0);
}
