/** A model's training state in shared memory, as checkpoints hold it. Writes it to files, reads it back bit for bit, and hashes it. */
import { createHash, type Hash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { type Moments, newMoments } from "./adamw.ts";
import { EngineError } from "./errors.ts";
import { type ParameterShape, Parameters } from "./graph/parameters.ts";
import { DTYPES, elementCount, type TypedArray } from "./graph/tensor.ts";
import { readHeader, readTensor, writeSafetensors } from "./model/safetensors.ts";
import type { Tensor } from "./model/weights.ts";

/** Optimiser steps, and the moments after the last. */
export interface TakenSteps {
  steps: number;
  moments: Moments;
}

export class ModelState {
  readonly weights: Parameters;
  /** present from the first step on; on a device from the first fetch on */
  moments: Moments | undefined;
  /** optimiser steps taken */
  steps = 0;
  /** The sum of the last step's gradients before it was clipped, where it is in shared memory. */
  gradient: Parameters | undefined;

  /** @param weights existing weights in this layout */
  constructor(shapes: readonly ParameterShape[], weights?: Float32Array) {
    this.weights = new Parameters(shapes, weights);
  }

  /** The contents of a checkpoint, in a form that can be sent to another thread. */
  get saved(): SharedState {
    const { weights, moments, steps } = this;
    return { shapes: weights.shapes, weights: weights.data, moments, steps };
  }

  /** Whether no step has been taken and the weights equal `other`'s. */
  untrained(other: ModelState): boolean {
    return this.steps === 0 && Buffer.compare(bytesOf(this.weights.data), bytesOf(other.weights.data)) === 0;
  }

  /** Continues from these weights and moments. */
  restore(weights: Iterable<readonly [name: string, data: Float32Array]>, taken: TakenSteps | undefined): void {
    for (const [name, data] of weights) this.weights.set(name, data);
    this.moments = taken?.moments;
    this.steps = taken?.steps ?? 0;
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: TypedArray) => new Uint8Array(buffer, byteOffset, byteLength);

const KINDS = ["first", "second"] as const;
const MASTER = "weight.";

/** The contents of a checkpoint. */
type SavedState = Pick<ModelState, "moments" | "steps" | "weights">;
/** The contents of a checkpoint in shared memory. */
export type SharedState = Pick<ModelState, "moments" | "steps"> & {
  shapes: readonly ParameterShape[];
  weights: Float32Array;
};

/**
 * Adam's moments as one safetensors file: `first.NAME` and `second.NAME`, and `steps` in the metadata.
 *
 * @param masters float32 weights, too, as `weight.NAME`: the policy's folder has rounded ones
 */
export function writeMoments(file: string, { moments, steps, weights }: SavedState, masters = false): void {
  const tensors = new Map<string, Tensor>();
  const put = (prefix: string, parameters: Parameters) => {
    for (const [name, tensor] of tensorsOf(parameters)) tensors.set(prefix + name, tensor);
  };
  if (masters) put(MASTER, weights);
  if (moments) for (const kind of KINDS) put(`${kind}.`, weights.over(moments[kind]));
  writeSafetensors(file, tensors, { format: "pt", steps: String(steps) });
}

/** The float32 weights in an optimiser's file; empty where there are none. */
export function readMasters(file: string, { weights }: ModelState): ReadonlyMap<string, Float32Array> {
  const stored = storedIn(file);
  return new Map(
    weights.shapes.flatMap(({ name }) => {
      const found = stored.get(MASTER + name);
      return found ? [[name, readTensor(found)] as const] : [];
    }),
  );
}

/** Bytes of a checkpoint's numbers. */
export function checkpointBytes(
  policy: readonly ParameterShape[],
  critic: readonly ParameterShape[] | undefined,
  { moments, masters }: { moments: boolean; masters: boolean },
): number {
  const numbers = (shapes: readonly ParameterShape[]) =>
    shapes.reduce((total, { shape }) => total + elementCount(shape), 0);
  const copies = moments ? 3 : 1;
  const rounded = masters ? DTYPES.bfloat16.bytes * numbers(policy) : 0;
  return DTYPES.float32.bytes * copies * (numbers(policy) + numbers(critic ?? [])) + rounded;
}

/** @returns undefined where no step had been taken. @throws EngineError `checkpoint` when the file does not fit the model */
export function readMoments(file: string, model: ModelState): TakenSteps | undefined {
  const steps = Number(readHeader(file).metadata.steps);
  if (!Number.isSafeInteger(steps) || steps < 0)
    throw new EngineError("checkpoint", `${file}: its metadata has no step count`);
  if (steps === 0) return undefined;
  const moments = newMoments(model.weights.data.length);
  for (const kind of KINDS) fill(model.weights.over(moments[kind]), file, `${kind}.`);
  return { moments, steps };
}

/** Weights of a critic: one safetensors file in a folder of its own. */
export function writeCritic(folder: string, weights: Parameters): void {
  fs.mkdirSync(folder, { recursive: true });
  writeSafetensors(path.join(folder, "model.safetensors"), tensorsOf(weights));
}

/** @throws EngineError `checkpoint` when a parameter is missing */
export function readCritic(folder: string, weights: Parameters): void {
  fill(weights, path.join(folder, "model.safetensors"));
}

const tensorsOf = (weights: Parameters): Map<string, Tensor> =>
  new Map(weights.shapes.map(({ name, shape }) => [name, { shape, data: weights.get(name).data as Float32Array }]));

/** Reads one tensor at a time: a file can be larger than the free memory. */
function fill(weights: Parameters, file: string, prefix = ""): void {
  const stored = storedIn(file);
  for (const { name } of weights.shapes) {
    const tensor = stored.get(prefix + name);
    if (!tensor) throw new EngineError("checkpoint", `${file}: ${prefix}${name} is missing`);
    weights.set(name, readTensor(tensor));
  }
}

const storedIn = (file: string) => new Map(readHeader(file).tensors.map((tensor) => [tensor.name, tensor]));

/** sha256 over names, weights and moments of the models, in order; hex. */
export function digestOf(models: Readonly<Record<string, SavedState | undefined>>): string {
  const hash = createHash("sha256");
  for (const [role, model] of Object.entries(models)) {
    if (!model) continue;
    hash.update(`${role}\n`);
    hashParameters(hash, model.weights);
    hash.update(`steps ${model.steps}\n`);
    if (model.moments) for (const kind of KINDS) hashParameters(hash, model.weights.over(model.moments[kind]));
  }
  return hash.digest("hex");
}

/** Hashes in pieces, because Node.js hashes less than 2 GiB at once, and the embedding of a 7B model has more. */
const HASH_BYTES = 2 ** 30;

function hashParameters(hash: Hash, parameters: Parameters): void {
  for (const { name, shape } of parameters.shapes) {
    const { data } = parameters.get(name);
    hash.update(`${name} ${shape}\n`);
    const bytes = bytesOf(data);
    for (let at = 0; at < bytes.length; at += HASH_BYTES) hash.update(bytes.subarray(at, at + HASH_BYTES));
  }
}
