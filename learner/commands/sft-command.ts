/** `longrun sft` (`SFT`). Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted (the same command goes on). */
import { resolve } from "node:path";
import {
  type AdapterOptions,
  fitSupervised,
  MappedWeights,
  modelIdentity,
  planTable,
  readTokenizer,
  responseEnd,
  startEngine,
} from "../engine/index.ts";
import { scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { digestOf, encodeExamples, holdOut } from "../sft/encode.ts";
import { DataError } from "../sft/examples.ts";
import { fineTune, stepsOf } from "../sft/fine-tune.ts";
import { readSource } from "../sft/sources.ts";
import { FolderError, WorkFolder } from "../sft/work-folder.ts";
import { openTask } from "../tasks/task.ts";
import { InputError, memoryOf, openModel, runCommand, taskFolder } from "./command.ts";
import { SFT, sftOptions } from "./sft-options.ts";
import { SftView } from "./sft-view.ts";

type Options = ReturnType<typeof sftOptions>;

async function sft(options: Options): Promise<number> {
  const view = new SftView(process.stdout, options.json);
  const { model, config, adapter: trained, device, threads } = await openModel(options.values);
  const data = readData(options, model, config.maxPositions, view);
  const { seed } = options.settings;
  const begin = options.lora ?? trained?.lora;
  const adapter: AdapterOptions | undefined = begin && {
    ...begin,
    seed,
    ...(trained && { folder: resolve(options.values.adapter!) }),
  };
  const request = { model, adapter, maxTokens: data.longest, microBatchSize: options.settings.microBatchSize, device };
  const memory = memoryOf(device);
  const named = { adapter: "--rank", lengths: "--max-tokens" };
  const compute = options.compute === "tf32" ? "float32" : options.compute;
  const plan = fitSupervised({ ...request, compute }, threads, memory, named);
  view.plan(planTable(plan, memory));
  if (options.planOnly) return 0;

  const folder = new WorkFolder(
    options.out,
    settingsOf(options, model, data, begin),
    "another --out",
    options.checkpointSeconds,
  );
  if (folder.isFinished) {
    view.finished(folder, adapter !== undefined, model);
    return 0;
  }
  const interrupted = new AbortController();
  const stop = () => {
    if (interrupted.signal.aborted) process.exit(130); // the second time
    interrupted.abort();
    view.note("stopping after this step; once more ends at once");
  };
  process.on("SIGINT", stop).on("SIGTERM", stop);
  const { workers, ...planned } = { workers: plan.ranks, ...plan };
  const engine = await startEngine({
    model,
    threads,
    device,
    adapter,
    workers,
    compute: options.compute,
    critic: false,
    reference: false,
    microBatchTokens: planned.microBatchTokens,
    rowTokens: planned.rowTokens,
    offloads: planned.offloads,
    swaps: planned.swaps,
    activationCheckpointing: planned.checkpointing ? "Always" : "Never",
  });
  let taken = 0;
  let saved = 0;
  const save = async () => {
    if (taken === saved) return;
    await folder.checkpoint(engine, taken);
    saved = taken;
  };
  try {
    const step = await folder.resume(engine, (reason) => view.note(reason));
    taken = saved = step;
    if (step > 0) view.note(`going on after step ${step}`);
    const watching = {
      signal: interrupted.signal,
      onStep: async (line: Parameters<SftView["step"]>[0]) => {
        taken = line.step;
        folder.append({ kind: "step", ...line });
        view.step(line, stepsOf(data.training.length, options.settings));
        if (folder.isDue) await save();
      },
      onHeldOut: (line: Parameters<SftView["heldOut"]>[0]) => {
        folder.append({ kind: "heldOut", ...line });
        view.heldOut(line);
      },
    };
    await fineTune(engine, data, options.settings, watching, { step, measured: folder.measured });
    await folder.finish(engine);
    view.finished(folder, adapter !== undefined, model);
    return 0;
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    await save();
    view.note(`stopped after step ${taken}; the same command goes on`);
    return 130;
  } finally {
    await engine.close();
  }
}

/** Reads, encodes and divides the examples. */
function readData(options: Options, model: string, positions: number, view: SftView) {
  const { best, task, style, heldOut: share, settings } = options;
  const tokenizer = readTokenizer(model);
  const maxTokens = Math.min(options.maxTokens ?? positions, positions);
  const taskPrompt = (folder: string) => {
    if (task === undefined)
      throw new InputError(`--task is missing; name the task that the programs in ${folder} solve`);
    const encode = (messages: Parameters<typeof tokenizer.encodeChat>[0]) => tokenizer.encodeChat(messages);
    return scratchPrompt(readPromptTask(openTask(taskFolder(task)), 3), { style, maxPromptTokens: maxTokens, encode })
      .messages;
  };
  const sources = options.data.map((path) => readSource(path, { best, taskPrompt }));
  const encoded = encodeExamples(
    sources.flatMap(({ examples }) => examples),
    ...([tokenizer, responseEnd(model, tokenizer), maxTokens] as const),
  );
  const { sequences, longest, tooLong } = encoded;
  if (sequences.length === 0)
    throw new InputError(
      tooLong > 0
        ? `all ${tooLong} examples are longer than ${maxTokens} tokens, the longest has ${longest}; raise --max-tokens, or use a model with more positions (${positions})`
        : "--data has no example",
    );
  const divided = holdOut(sequences, share, settings.seed);
  view.data(
    sources.map(({ facts }) => facts),
    { ...encoded, ...divided, maxTokens, settings },
  );
  return { ...divided, digest: digestOf(sequences), longest: Math.min(longest, maxTokens) };
}

/** Returns what cannot change while training goes on. Threads and device may: they change bits alone. */
function settingsOf(
  options: Options,
  model: string,
  { digest }: { digest: string },
  lora: Omit<AdapterOptions, "seed"> | undefined,
) {
  return {
    model: modelIdentity(new MappedWeights(model)),
    "the data (SHA-256 of its tokens)": digest,
    rank: lora?.rank ?? null,
    alpha: lora?.alpha ?? null,
    targets: lora ? [...lora.targets].sort().join() : null,
    adapter: options.values.adapter ?? null,
    heldOut: options.heldOut,
    compute: options.compute,
    ...options.settings,
  };
}

if (import.meta.main)
  await runCommand(SFT, async (values) => {
    try {
      return await sft(sftOptions(values));
    } catch (error) {
      if (error instanceof DataError || error instanceof FolderError)
        throw new InputError(error.message, { cause: error });
      throw error;
    }
  });
