/** Shared by the commands: arguments, lines of JSON and exit status. */
import fs from "node:fs";
import path from "node:path";
import { isPolicyName, policyFolder } from "../../crds/policy.ts";
import { ManifestError } from "../../crds/trainingrun.ts";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { endOnClosedPipe } from "../../proto/closed-pipe.ts";
import { asksForHelp, helpOf } from "../../proto/command-help.ts";
import {
  type Bound,
  bind,
  type Command,
  type Options,
  UsageError,
  type Values,
  wordOf,
} from "../../proto/command-line.ts";
import {
  type Budget,
  type Device,
  gpuMemory,
  hasGpu,
  hostMemory,
  ModelError,
  onNotice,
  parseDevice,
  probeDevice,
  readAdapter,
  readConfig,
  resolveDevice,
  useDevice,
} from "../engine/index.ts";
import { TransferError } from "../hub/errors.ts";
import { RolloutError } from "../rollout/errors.ts";
import { TaskError } from "../tasks/errors.ts";
import { readRegistry } from "../tasks/registry.ts";

export class InputError extends Error {}

const BAD_INPUT = [InputError, UsageError, ModelError, TaskError, RolloutError, ManifestError];

/**
 * Runs a command to its end. Exit status: a number that it returns, else 0 done, 1 failed, 2 bad input. Ctrl-C kills
 * the process, which a shell and `longrun` report as 130; every line that was written is whole.
 */
export async function runCommand<const O extends Options>(
  command: Command<O>,
  run: (values: Values<O>, ...words: string[]) => unknown,
): Promise<void> {
  await runBound(command, bind(command, run).run);
}

/** The same for a command whose next word chooses one of `commands`. */
export async function runCommands(group: Command, commands: readonly Bound[]): Promise<void> {
  await runBound(group, ([word, ...args]) => {
    const chosen = commands.find(({ command }) => wordOf(command) === word);
    if (chosen) return chosen.run(args);
    const words = commands.map(({ command }) => wordOf(command));
    const known = `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
    const more = `longrun help ${wordOf(group)} says more`;
    throw new InputError(word === undefined ? helpOf(group) : `${group.name} ${word}: give ${known}; ${more}`);
  });
}

async function runBound(command: Command, run: (args: string[]) => unknown): Promise<void> {
  endOnClosedPipe();
  const args = process.argv.slice(2);
  if (asksForHelp(args)) {
    process.stdout.write(helpOf(command));
    return;
  }
  try {
    const status = await run(args);
    if (typeof status === "number") process.exitCode = status;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    const refused =
      BAD_INPUT.some((kind) => error instanceof kind) ||
      ["input", "memory", "device", "tlsFile"].includes(code) ||
      (error instanceof TransferError && error.needsPerson);
    process.stderr.write(`${message}\n`);
    process.exitCode = refused ? 2 : 1;
  }
}

export function required(value: string | undefined, option: string, what: string): string {
  if (value === undefined || value === "") throw new InputError(`${option} is missing; give ${what}`);
  return value;
}

/** @throws InputError unless `text` is a whole number of at least `least` */
export function wholeNumber(text: string, option: string, least: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
  throw new InputError(`${option} is ${text}; give a whole number of at least ${least}`);
}

/** Returns the reader of an option's whole number. */
export const whole =
  (least: number) =>
  (text: string, option: string): number =>
    wholeNumber(text, option, least);

/** Returns the reader of an option's number. @param what to give, for the error */
export const number =
  (what: string, isGood: (value: number) => boolean) =>
  (text: string, option: string): number => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value) && isGood(value)) return value;
    throw new InputError(`${option} is ${text}; give ${what}`);
  };

export const MODEL_OPTIONS = {
  "model <MODEL>": "model folder, or the name of a bundled policy",
  "adapter <DIR>": "PEFT folder of a LoRA adapter",
  "device <DEVICE>": "auto, cpu or cuda:N (default: LONGRUN_DEVICE, else auto: a GPU that works, else the CPU)",
  "threads <N>": { help: "threads of the CPU; 0: as many as there are cores", default: "0", as: whole(0) },
} as const;

/** Reads both folders and runs all networks of this thread on the device. */
export async function openModel({ threads, ...values }: Values<typeof MODEL_OPTIONS>) {
  const model = modelFolder(required(values.model, "--model", "a model folder"));
  const device = await chooseDevice(values.device);
  useDevice(device);
  onNotice((text) => process.stderr.write(`${text}\n`));
  const config = readConfig(model);
  const adapter = values.adapter === undefined ? undefined : readAdapter(values.adapter, config);
  return { model, config, adapter, device, threads };
}

/** Returns where the networks run; stderr says why `auto` does not take an existing GPU. */
export async function chooseDevice(wish = process.env.LONGRUN_DEVICE || "auto"): Promise<Device> {
  const gpu = hasGpu();
  const { device, reason } = await resolveDevice(parseDevice(wish), probeDevice, gpu);
  if (gpu && device.kind === "cpu" && reason) process.stderr.write(`on the CPU: ${reason}\n`);
  return device;
}

/** Returns the memory of the host and of the GPU that a command may use. */
export const memoryOf = (device: Device): Budget => ({
  host: hostMemory(),
  gpu: device.kind === "cuda" ? gpuMemory(device) : undefined,
});

/** Returns a model folder: the given one, or the folder of a bundled policy, such as quickstart. */
export function modelFolder(model: string): string {
  if (!isPolicyName(model) || fs.existsSync(model)) return model;
  try {
    return policyFolder(model, "--model", process.cwd());
  } catch (cause) {
    throw new InputError(`${model}: there is no such model folder, and no policy of this name; quickstart is one`, {
      cause,
    });
  }
}

/** Returns a task folder: the given one, or the folder of a bundled task that `longrun prepare` made. */
export function taskFolder(task: string): string {
  if (/[/.]/.test(task) || fs.existsSync(task)) return task;
  const prepared = path.join(cacheFolder(), "tasks", task);
  if (fs.existsSync(prepared)) return prepared;
  const bundled = Object.keys(readRegistry());
  if (!bundled.includes(task))
    throw new InputError(
      `${task}: there is no such folder, and no bundled task of this name; there are ${bundled.join(", ")}`,
    );
  throw new InputError(`${task}: this bundled task is not prepared yet; prepare it with: longrun prepare ${task}`);
}

export interface Line {
  readonly json: Readonly<Record<string, unknown>>;
  /** file and line number, for errors */
  readonly place: string;
}

export function readText(file: string): string {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file; check the path" : message;
    throw new InputError(`cannot read ${file}: ${why}`, { cause });
  }
}

/** @throws InputError naming the first line that is no JSON object */
export function readLines(file: string): Line[] {
  const lines = readText(file).split("\n");
  if (lines.at(-1)?.trim() === "") lines.pop();
  return lines.map((line, index) => parseLine(line, `${file}, line ${index + 1}`));
}

export function parseLine(text: string, place: string): Line {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return { json: json as Line["json"], place };
  } catch (cause) {
    throw new InputError(`${place}: not JSON: ${(cause as Error).message}`, { cause });
  }
  throw new InputError(`${place}: expected a JSON object`);
}

/** Returns the `tokens` of a line. @throws InputError unless they are at least one id of the vocabulary */
export function tokensOf({ json, place }: Line, vocabulary: number): Int32Array {
  const { tokens } = json;
  if (!Array.isArray(tokens))
    throw new InputError(`${place}: tokens is ${brief(tokens)}; expected a list of token ids`);
  if (tokens.length === 0) throw new InputError(`${place}: tokens is empty; begin it with some token`);
  const outside = tokens.findIndex((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
  if (outside >= 0) {
    const range = `token ids are whole numbers from 0 to ${vocabulary - 1}`;
    throw new InputError(`${place}: tokens[${outside}] is ${brief(tokens[outside])}; ${range}`);
  }
  return Int32Array.from(tokens as number[]);
}

export function refuseOtherFields({ json, place }: Line, fields: readonly string[]): void {
  const other = Object.keys(json).find((field) => !fields.includes(field));
  if (other === undefined) return;
  throw new InputError(`${place}: unknown field ${JSON.stringify(other)}; known are ${fields.join(", ")}`);
}

export function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function printLine(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
