/** The models and graphs of memory plans. Plans of related requests share most of them: a run without a critic has the graphs of the same run with one. */
import { type Adaptation, plannedAdaptation } from "./adaptation.ts";
import type { AdapterOptions } from "./engine.ts";
import type { Compute, Graph } from "./graph/graph.ts";
import { blocksOf } from "./model/decoder.ts";
import { MappedWeights } from "./model/mapped.ts";
import { plannedKernels } from "./runtime/kernels.ts";
import {
  accuracyGraph,
  evaluateGraph,
  policyStepGraph,
  pretrainStepGraph,
  valueGraph,
  valueStepGraph,
} from "./steps.ts";

/** The fields of a request that its graphs depend on. Slots and GPUs change no graph. */
export interface GraphsRequest {
  /** a Hugging Face folder */
  model: string;
  /** left out: every weight is trained */
  adapter: AdapterOptions | undefined;
  critic: boolean;
  /** supervised steps: alone, so that nothing is generated and there is no reference; or before reinforcement learning. Default: none */
  supervised?: "Alone" | "First" | undefined;
  /** layers are computed again in the backward pass; default false */
  checkpointing?: boolean;
  /** precision of matrix products; default float32 */
  compute?: Compute;
  maxPromptTokens: number;
  maxResponseTokens: number;
}

export interface PlannedModel {
  model: Adaptation;
  /** the model's weights in its files */
  stored: MappedWeights["tensors"];
}

/** Bytes that a graph needs. */
export type Pass = { activations: number; logits: number };

export interface PlannedGraph {
  graph: Graph;
  /** the graph trains, so `microBatchSize` bounds its passes */
  step: boolean;
  /** the passes that were planned before, by device and lengths */
  passes: Map<string, Pass>;
}

/** Returns the options of a request's graphs. In bfloat16 they have our own kernels: a GPU that computes in bfloat16 can load them. */
export const graphOptions = ({ compute }: Pick<GraphsRequest, "compute">) => ({
  compute,
  kernels: compute === "bfloat16" ? plannedKernels : undefined,
});

/** Builds each model and graph once. */
export class PlanGraphs {
  readonly #models = new Map<string, PlannedModel>();
  readonly #graphs = new Map<string, PlannedGraph>();

  /** Reads config.json, and the headers of the weights' files where there are any. @throws ModelError for a folder that cannot be used */
  model({ model: folder, adapter }: GraphsRequest): PlannedModel {
    return once(this.#models, [folder, adapter], () => ({
      model: plannedAdaptation(folder, adapter),
      stored: MappedWeights.planned(folder).tensors,
    }));
  }

  /** Returns the graphs of a run. Each has a session, whose arena keeps the memory of its largest batch. */
  of(request: GraphsRequest): PlannedGraph[] {
    const {
      model: folder,
      adapter,
      critic,
      supervised,
      checkpointing = false,
      maxPromptTokens,
      maxResponseTokens,
    } = request;
    const { model } = this.model(request);
    const blocks = blocksOf(maxPromptTokens + maxResponseTokens);
    const options = { ...graphOptions(request), blocks };
    const built = (name: string, step: boolean, build: () => Graph) => {
      const key = [name, folder, adapter, options, step && checkpointing];
      return once(this.#graphs, key, () => ({ graph: build(), step, passes: new Map() }));
    };
    const ofResponses = () => [
      built("supervised step", true, () => pretrainStepGraph(model, { ...options, checkpointing })),
      built("accuracy", false, () => accuracyGraph(model, options)),
    ];
    if (supervised === "Alone") return ofResponses();
    const ofPolicy = [
      built("policy step", true, () => policyStepGraph(model, { ...options, checkpointing })),
      built("policy", false, () => evaluateGraph(model, "policy", options)),
      built("reference", false, () => evaluateGraph(model, "reference", options)),
    ];
    const ofRun = [...ofPolicy, ...(supervised === "First" ? ofResponses() : [])];
    if (!critic) return ofRun;
    return [
      ...ofRun,
      built("value step", true, () => valueStepGraph(model, { ...options, checkpointing })),
      built("values", false, () => valueGraph(model, options)),
    ];
  }
}

/** Returns what `made` has for the key; makes it if there is none. */
function once<T>(made: Map<string, T>, key: unknown, make: () => T): T {
  const text = JSON.stringify(key);
  const found = made.get(text) ?? make();
  made.set(text, found);
  return found;
}
