/** The thread that merges an adapter into its model's weights, once. An error ends it. */
import { workerData } from "node:worker_threads";
import { mergeFolder, type SafetensorsDType } from "../engine/index.ts";

export interface MergeRequest {
  /** The model folder that the adapter belongs to. */
  model: string;
  /** A folder of PEFT. */
  adapter: string;
  out: string;
  /** The dtype of the merged weights. */
  dtype: SafetensorsDType;
}

const { model, adapter, out, dtype } = workerData as MergeRequest;
mergeFolder(model, adapter, out, { dtype });
