/** Phase 0 of a run: supervised training on given answers (`spec.warmStart`). */
import { join } from "node:path";
import { ManifestError, type TrainingRunSpec } from "../crds/trainingrun.ts";
import type { WarmStartData } from "./context.ts";
import { type Engine, responseEnd, type Tokenizer } from "./engine/index.ts";
import type { WarmStartSummary } from "./metrics/summary.ts";
import type { Run } from "./run.ts";
import { digestOf, encodeExamples, holdOut } from "./sft/encode.ts";
import { DataError } from "./sft/examples.ts";
import { type FineTuneSettings, fineTune, LEARNING_RATES, stepsOf } from "./sft/fine-tune.ts";
import { sentenceOf } from "./sft/sentence.ts";
import { examplesOfLines } from "./sft/sources.ts";
import { isFinished, WorkFolder } from "./sft/work-folder.ts";

/** The folder, in the run folder, of its lines, its checkpoint and, when it is over, of the warm-started policy. */
const FOLDER = "warm-start";

/** Whether a run's warm start is over. */
export const isWarm = (directory: string): boolean => isFinished(join(directory, FOLDER));

/**
 * Reads the examples, if the run has a warm start that is not over.
 *
 * @param policy the model folder
 * @throws ManifestError naming what cannot be used
 */
export function readWarmStart(
  directory: string,
  { warmStart, model, seed }: TrainingRunSpec,
  policy: string,
  tokenizer: Tokenizer,
): WarmStartData | undefined {
  if (warmStart === undefined || isWarm(directory)) return undefined;
  const refused = (why: string, cause?: unknown) =>
    new ManifestError([`spec.warmStart.data: ${why}`], cause === undefined ? {} : { cause });
  // a pod mounts each source at a path
  const path = warmStart.data.path!;
  const maxTokens = model.maxPromptTokens + model.maxResponseTokens;
  try {
    const encoded = encodeExamples(examplesOfLines(path), tokenizer, responseEnd(policy, tokenizer), maxTokens);
    const { sequences, tooLong, repeated, longest } = encoded;
    if (sequences.length === 0 && tooLong > 0)
      throw refused(
        `all ${tooLong} examples are longer than model.maxPromptTokens + model.maxResponseTokens = ${maxTokens} tokens; the longest has ${longest}`,
      );
    if (sequences.length === 0) throw refused(`${path} has no example`);
    return { ...holdOut(sequences, warmStart.heldOut, seed), digest: digestOf(sequences), tooLong, repeated };
  } catch (cause) {
    throw cause instanceof DataError ? refused(cause.message, cause) : cause;
  }
}

/**
 * Loads the warm-started policy, and makes it the reference, if the warm start is over.
 *
 * @param hasCheckpoint whether the policy comes from a checkpoint of an iteration
 */
export async function loadWarmStart(
  engine: Pick<Engine, "loadPolicy" | "loadReference">,
  directory: string,
  { warmStart }: Pick<TrainingRunSpec, "warmStart">,
  hasCheckpoint: boolean,
): Promise<void> {
  if (warmStart === undefined || !isWarm(directory)) return;
  const folder = join(directory, FOLDER);
  if (!hasCheckpoint) await engine.loadPolicy(folder);
  if (warmStart.reference === "WarmStarted") await engine.loadReference(folder);
}

/** The parts of a run that its warm start uses. */
type WarmStarting = Pick<
  Run,
  "directory" | "spec" | "engine" | "store" | "phases" | "files" | "metrics" | "progress" | "log" | "warmStartData"
>;

/**
 * Trains the policy on the given answers, unless that is done. Begins where an earlier process stopped. Afterwards the optimiser has
 * forgotten it, and with `reference: WarmStarted` the KL is measured from here.
 *
 * @throws the reason of the signal that stopped the run; the steps so far are then on disk
 */
export async function warmUp(run: WarmStarting): Promise<void> {
  const { directory, spec, engine, store, phases, files, metrics, progress, log, warmStartData: data } = run;
  const known = files.summary.warmStart;
  if (data === undefined) {
    // no iteration's checkpoint has its seconds yet
    if (known && progress.state.iteration === 0) addSeconds(progress, known.seconds);
    return;
  }
  const settings = settingsOf(spec);
  const steps = stepsOf(data.training.length, settings);
  const folder = new WorkFolder(join(directory, FOLDER), { data: data.digest, ...settings }, "begin a new run");
  store.checkFence();
  let step = await folder.resume(engine, (reason) => log.warn(reason));
  let saved = step;
  store.dropWarmSteps(step);
  const enter = () => phases.enter("warmUp", steps, step);
  const save = async () => {
    if (step === saved) return;
    store.checkFence();
    await folder.checkpoint(engine, step);
    saved = step;
  };
  const summarise = async (isOver: boolean) => {
    const summary = summaryOf(folder, data, steps, isOver);
    metrics.showWarmStart(summary);
    await files.updateSummary({ warmStart: summary });
  };
  enter();
  await summarise(false);
  try {
    await fineTune(
      engine,
      data,
      settings,
      {
        signal: phases.stop,
        onStep: async (line) => {
          step = line.step;
          folder.append({ kind: "step", ...line });
          store.addWarmStep(step, { ...line });
          metrics.showWarmStart(summaryOf(folder, data, steps, false));
          if (folder.isDue) await save();
          enter();
        },
        onHeldOut: async (line) => {
          folder.append({ kind: "heldOut", ...line });
          log.info(line, `warm start: held-out loss ${line.loss.toFixed(4)}`);
          await summarise(false);
        },
      },
      { step, measured: folder.measured },
    );
  } catch (error) {
    if (phases.stop.aborted) await save();
    throw error;
  }
  store.checkFence();
  await folder.finish(engine);
  await loadWarmStart(engine, directory, spec, false);
  await summarise(true);
  phases.end();
  const summary = files.summary.warmStart!;
  addSeconds(progress, summary.seconds);
  files.notice(sentenceOf(summary));
}

function addSeconds(progress: WarmStarting["progress"], seconds: number): void {
  progress.state = { ...progress.state, elapsedSeconds: progress.state.elapsedSeconds + seconds };
}

/** Returns the settings of the training. */
export function settingsOf({ warmStart, model, algorithm, seed }: TrainingRunSpec): FineTuneSettings {
  const { data: _, heldOut: __, reference: ___, ...given } = warmStart!;
  const rate = LEARNING_RATES[model.adaptation.type === "LoRA" ? "lora" : "full"];
  return { ...given, learningRate: given.learningRate ?? rate, microBatchSize: algorithm.microBatchSize, seed };
}

function summaryOf(folder: WorkFolder, data: WarmStartData, steps: number, isOver: boolean): WarmStartSummary {
  const taken = folder.lines.filter((line) => line.kind === "step");
  const heldOut = folder.lines.filter((line) => line.kind === "heldOut");
  const fit = (line: (typeof heldOut)[number] | undefined) => line && { loss: line.loss, accuracy: line.accuracy };
  const { training, tooLong, repeated } = data;
  return {
    examples: training.length,
    heldOut: data.heldOut.length,
    tooLong,
    repeated,
    steps,
    taken: taken.length,
    isOver,
    firstLoss: taken[0]?.loss ?? null,
    loss: taken.at(-1)?.loss ?? null,
    ...(heldOut.length > 0 && { before: fit(heldOut[0]), newest: fit(heldOut.at(-1)) }),
    seconds: taken.reduce((total, { seconds }) => total + seconds, 0),
  };
}
