/** Starts the engine with a run's weights, or with the weights that an evaluation measures. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { checkBase, loadCheckpoint, pruneCheckpoints } from "./checkpoints.ts";
import type { RunContext } from "./context.ts";
import {
  checkLengths,
  type EngineOptions,
  MappedWeights,
  modelIdentity,
  onNotice,
  readConfig,
  startEngine,
} from "./engine/index.ts";
import { adapterOf, COMPUTE, place, placeEvaluation } from "./engine-options.ts";
import { EvaluatedPolicy, type Weights, weightsOf } from "./evaluation/evaluated-policy.ts";
import type { Policies } from "./evaluation/policies.ts";
import { logNotice } from "./log.ts";
import type { Process } from "./process.ts";
import { checkInstrumenter } from "./rollout/instrument-policy.ts";
import { checkSpace } from "./space.ts";
import { GENERATORS, sentWeights } from "./start-generators.ts";
import { loadWarmStart } from "./warm-start.ts";

/**
 * Starts the engine with the weights of the newest checkpoint, or with the run's initial policy, and removes files that the run needs no
 * more: the disk may be full of them. @param restarted it has begun before
 */
export async function loadPolicy(
  { options, directory, spec, tasks, store, log }: Process,
  policy: string,
  restarted: boolean,
) {
  const { maxPositions } = readConfig(policy);
  checkLengths(spec.model, maxPositions);
  checkInstrumenter(spec.model, maxPositions);
  new MappedWeights(policy); // refuses a folder whose weights are missing or torn
  const plan = await place(policy, spec, options, log, restarted);
  const sentBytes = options.generators.length > 0 ? sentWeights(spec, policy, plan.device).bytes : 0;
  await rm(join(directory, GENERATORS), { recursive: true, force: true }); // weights of a killed learner
  const { keepLast } = spec.learner.checkpoint;
  const kept = store.checkpoints().slice(0, keepLast);
  const warning = checkSpace(plan.checkpointBytes, spec, {
    directory,
    kept: kept.map(({ path }) => path),
    inPod: options.stay,
    sentBytes,
  });
  if (warning !== undefined) logNotice(log, warning);
  const { device, devices, microBatchTokens, rowTokens, ranks, checkpointing, offloads, swaps, widens } = plan;
  const adapter = adapterOf(spec);
  const base = adapter && modelIdentity(new MappedWeights(policy));
  const { threads, compute } = spec.learner;
  const { generationBatchSize: slots, maxPromptTokens, maxResponseTokens } = spec.model;
  const planned = {
    workers: ranks,
    microBatchTokens,
    rowTokens,
    offloads,
    swaps,
    widens,
  } satisfies Partial<EngineOptions>;
  onNotice((text) => log.warn(text));
  const engine = await startEngine({
    model: policy,
    device,
    ...(devices && { devices }),
    threads,
    adapter,
    compute: COMPUTE[compute],
    ...planned,
    slots,
    positions: maxPromptTokens + maxResponseTokens,
    critic: spec.algorithm.baseline === "Critic",
    activationCheckpointing: checkpointing ? "Always" : "Never",
  });
  let state: RunContext["progress"]["state"] = { iteration: 0, elapsedSeconds: 0, ...(base && { base }) };
  const { lineage, checkpoint } = await store.beginLineage(async (row) => {
    checkBase(join(directory, row.path), base, policy);
    const loaded = await loadCheckpoint(directory, engine, row, (reason) => log.warn(reason));
    state = { ...state, ...loaded };
    return loaded !== undefined;
  });
  // If no checkpoint could be used, they stay until a new one is whole.
  if (checkpoint) await pruneCheckpoints(directory, store.keepCheckpoints(keepLast));
  const discarded = store.discardOtherTasks(tasks.names);
  if (discarded > 0) log.info({ samples: discarded }, "samples of tasks that the run has no more are discarded");
  if (checkpoint === undefined && spec.initFrom?.path !== undefined) {
    checkBase(spec.initFrom.path, base, policy);
    await engine.load(spec.initFrom.path);
  }
  await loadWarmStart(engine, directory, spec, checkpoint !== undefined);
  log.info({ lineage, iteration: state.iteration, checkpoint: checkpoint?.path }, "the run begins");
  return { engine, device, checkpoint, state, load: undefined };
}

/** Starts an engine that generates with one policy after the other: `load` switches to a checkpoint's policy. */
export async function loadEvaluated({ options, spec, store, log }: Process, policy: string, policies: Policies) {
  const { maxPositions } = readConfig(policy);
  checkLengths(spec.model, maxPositions);
  checkInstrumenter(spec.model, maxPositions);
  const adapter = adapterOf(spec);
  const base = adapter && modelIdentity(new MappedWeights(policy));
  const weightsAt = (checkpoint?: string) => weightsOf(policy, adapter, checkpoint);
  const all = Object.values(policies).map(({ checkpoint }) => weightsAt(checkpoint));
  const largest = all.find(({ model }) => model !== policy) ?? all[0]!;
  const instruments = spec.model.instrumenter === "StaticPolicy" && largest.model !== policy;
  const models = [...new Set([largest.model, ...(instruments ? [policy] : [])])].map((folder) => ({
    folder,
    lora: adapter,
  }));
  const { device, devices, ranks: workers, widens } = await placeEvaluation(models, spec, options, log);
  const { generationBatchSize: slots, maxPromptTokens, maxResponseTokens } = spec.model;
  onNotice((text) => log.warn(text));
  const start = (weights: Weights) =>
    startEngine({
      ...weights,
      device,
      ...(devices && { devices }),
      threads: spec.learner.threads,
      workers,
      widens,
      critic: false,
      slots,
      positions: maxPromptTokens + maxResponseTokens,
    });
  const evaluated = await EvaluatedPolicy.open(start, weightsAt(), instruments);
  const { lineage } = await store.beginLineage(async () => false);
  log.info({ lineage }, "the evaluation begins");
  const load = (checkpoint: string) => {
    checkBase(checkpoint, base, policy);
    return evaluated.change(weightsAt(checkpoint));
  };
  const state: RunContext["progress"]["state"] = { iteration: 0, elapsedSeconds: 0 };
  return { engine: evaluated.engine, device, checkpoint: undefined, state, load };
}
