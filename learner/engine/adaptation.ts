/** Selects a model's trained weights: all, or low-rank adapters beside one shared frozen trunk. */
import type { AdapterOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import type { Graph, Value } from "./graph/graph.ts";
import type { ParameterShape, Parameters } from "./graph/parameters.ts";
import { readAdapter, writeAdapter } from "./model/adapter-folder.ts";
import type { ModelConfig } from "./model/config.ts";
import { decoderParameters, outputLayer, type Project } from "./model/decoder.ts";
import { eachWeight, readConfig, readEosIds, readWeights, writeModelFolder } from "./model/folder.ts";
import { frozenSessionOptions, frozenTrunk } from "./model/frozen.ts";
import type { GeneratorWeights, Numbers } from "./model/generate-weights.ts";
import { adapterInputs, adapterParameters, initialAdapter, type LoraConfig } from "./model/lora.ts";
import { MappedWeights } from "./model/mapped.ts";
import type { OutputLayer } from "./model/token-log-probs.ts";
import { valueHeadShapes } from "./model/value-head.ts";
import { parameters } from "./model/weights.ts";
import type { SessionOptions } from "./runtime/session.ts";

export type Role = "policy" | "reference" | "critic";

/** A decoder in a graph. */
interface Trunk {
  /** the inputs with gradients, if requested, by parameter name */
  readonly trained: ReadonlyMap<string, Value>;
  readonly weights: ReadonlyMap<string, Value>;
  /** absent if linear layers have only their weights */
  readonly project?: Project;
  /** absent for a critic */
  readonly outputLayer: OutputLayer | undefined;
}

export interface Adaptation {
  readonly config: ModelConfig;
  readonly eosIds: readonly number[];
  /** trained parameters, without the critic's value head */
  readonly shapes: Readonly<Record<"policy" | "critic", readonly ParameterShape[]>>;
  /** Returns the weights of the starting policy and the reference. Reads all weights. @throws ModelError `weights` for one that is not finite */
  initial(): Iterable<readonly [name: string, data: Float32Array]>;
  trunk(g: Graph, role: Role, options: { requiresGrad: boolean }): Trunk;
  readonly sessionOptions: SessionOptions;
  /** the frozen trunk, if there is one */
  readonly frozen?: { readonly mapped: MappedWeights; readonly lora: LoraConfig };
  /** @param weights the policy's or the reference's */
  generatorWeights(weights: Numbers, role: Role): GeneratorWeights;
  /** Writes the policy as a model folder. @param dtype dtype of a whole model's matrices; adapters are float32 */
  write(folder: string, weights: Parameters, dtype?: "F32" | "BF16"): void;
  /** @throws ModelError | EngineError when `folder` holds no policy that fits */
  read(folder: string): Iterable<readonly [name: string, data: Float32Array]>;
}

/** @param adapter left out: every weight is trained. @throws ModelError for a folder that cannot be used */
export const adaptationOf = (model: string, adapter?: AdapterOptions): Adaptation =>
  adapter ? loraAdaptation(model, adapter, adapter.seed, adapter) : fullAdaptation(model);

/** Returns the adaptation for a plan: the folder may lack its weights. */
export const plannedAdaptation = (model: string, adapter?: AdapterOptions): Adaptation =>
  adapter
    ? loraAdaptation(model, adapter, adapter.seed, { ...adapter, mapped: MappedWeights.planned(model) })
    : fullAdaptation(model);

/** Returns the shapes of a role's trained weights, a critic's value head included; the reference has the policy's shapes. */
export function trainedShapes({ shapes, config }: Adaptation, role: Role): readonly ParameterShape[] {
  return role === "critic" ? [...shapes.critic, ...valueHeadShapes(config)] : shapes.policy;
}

/** Weights in this process's memory, by name. */
export const viewsOf = (weights: Parameters) =>
  new Map(weights.shapes.map(({ name }) => [name, weights.get(name).data as Float32Array]));

/** Every weight is trained; policy, critic and reference are float32 copies in this process. */
export function fullAdaptation(model: string): Adaptation {
  const config = readConfig(model);
  const critic = { ...config, tied: true }; // a critic has no output layer
  return {
    config,
    eosIds: readEosIds(model),
    shapes: { policy: parameters(config), critic: parameters(critic) },
    initial: () => eachWeight(model, config),
    trunk(g, role, options) {
      const trained = decoderParameters(g, role === "critic" ? critic : config, options);
      return { trained, weights: trained, outputLayer: role === "critic" ? undefined : outputLayer(config, trained) };
    },
    sessionOptions: {},
    generatorWeights: (weights) => weights,
    write: (folder, policy, dtype) => writeModelFolder(folder, model, config, viewsOf(policy), dtype),
    read: (folder) => readWeights(folder, config),
  };
}

/**
 * Adapters are trained; the trunk is the model folder's files, memory-mapped once for all sessions.
 *
 * @param reference whether the reference has an adapter of its own
 */
export function loraAdaptation(
  model: string,
  lora: LoraConfig,
  seed: number,
  {
    reference = false,
    mapped = new MappedWeights(model),
  }: Pick<AdapterOptions, "reference"> & { mapped?: MappedWeights } = {},
): Adaptation {
  const { config } = mapped;
  const shapes = adapterParameters(config, lora);
  const isAdapted = (role: Role) => reference || role !== "reference";
  return {
    config,
    eosIds: readEosIds(model),
    shapes: { policy: shapes, critic: shapes },
    initial() {
      mapped.checkFinite();
      return initialAdapter(config, lora, seed);
    },
    trunk(g, role, options) {
      const adapter = isAdapted(role) ? adapterInputs(g, config, lora, options) : undefined;
      const wants = { gradient: options.requiresGrad, logits: role !== "critic" };
      return { trained: adapter?.values ?? new Map(), ...frozenTrunk(g, mapped, adapter, wants) };
    },
    sessionOptions: frozenSessionOptions(mapped),
    frozen: { mapped, lora },
    generatorWeights: (weights, role) =>
      // an adapter without layers has no graph that a GPU could join
      !isAdapted(role) || shapes.length === 0 ? { base: mapped } : { base: mapped, adapter: { lora, weights } },
    write: (folder, policy) => writeAdapter(folder, { lora, weights: viewsOf(policy) }, model),
    read(folder) {
      const adapter = readAdapter(folder, config);
      const told = ({ rank, alpha, targets }: LoraConfig) =>
        `rank ${rank}, alpha ${alpha}, targets ${[...targets].sort().join(", ")}`;
      if (told(adapter.lora) === told(lora)) return adapter.weights;
      throw new EngineError("checkpoint", `${folder} has ${told(adapter.lora)}; the run has ${told(lora)}`);
    },
  };
}
