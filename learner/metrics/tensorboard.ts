/**
 * `tensorboard/` of a run folder: every number of metrics.jsonl as a scalar in TensorBoard's event files, a step an
 * iteration.
 * A learner that continues a run cuts off the iterations that a restart dropped and begins a file of its own, so that all files
 * together have each iteration once. The START event at its beginning makes a running TensorBoard forget later iterations. No file is
 * removed, because TensorBoard would wait for it for ever.
 */
import { existsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, truncate } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import { writeFault } from "./errors.ts";
import type { IterationMetrics } from "./iteration.ts";

const Event = protobuf
  .loadSync(fileURLToPath(new URL("tensorboard.proto", import.meta.url)))
  .lookupType("tensorboard.Event");

/** Numbers of a line by the section that TensorBoard shows them in. */
export const SECTIONS = {
  score: ["meanScore", "bestScore", "bestScoreSoFar", "meanNormalizedScore", "meanReward"],
  programs: [
    ...[
      "samples",
      "executed",
      "validFraction",
      "truncatedFraction",
      "verbatimValidShare",
      "flagged",
      "reaching",
      "forgedMarkers",
    ],
    ...["clampedRewards", "cappedRewards", "verificationFailures", "zeroSpreadShare", "groupDropped"],
    ...["noSignalIterations", "zeroSignalDropped"],
  ],
  durations: [
    ...["meanDurationSeconds", "trainedMeanDurationSeconds", "weightedMeanDurationSeconds"],
    ...["launchedMeanDurationSeconds", "effectiveSampleSize", "maxDurationWeight"],
  ],
  policy: [
    ...["kl", "klCoefficient", "updateKl", "entropy", "learningRate", "policyLoss", "ratioMean", "ratioMax"],
    ...["clipFraction", "gradientNorm", "policySteps", "skippedSteps"],
  ],
  critic: ["criticLearningRate", "valueLoss", "explainedVariance", "criticGradientNorm"],
  staleness: [
    ...["meanLag", "maxLag", "importanceMean", "importanceMaxDeviation", "importanceCappedShare"],
    ...["staleDropped", "staleWaited"],
  ],
  time: [
    ...["seconds", "elapsedSeconds", "tokensGenerated", "generationTokensPerSecond", "tokensTrained"],
    ...["trainingTokensPerSecond", "learnerIdleShare", "actorBusyShare", "checkpointSeconds", "checkpointBytes"],
  ],
} as const satisfies Record<string, readonly (keyof IterationMetrics)[]>;

/** Records that are sections of their own, with a scalar for each key. */
export const RECORDS = [
  ...["secondsByPhase", "outcomes", "markers", "families", "instrumenters", "promptKinds", "guards", "executions"],
  ...["instrumenterFaults", "engineSeconds", "improvePrompts", "debugPrompts", "debugging", "failureSteps", "reaches"],
] as const satisfies readonly (keyof IterationMetrics)[];

const NAME = "events.out.tfevents";

export class TensorBoardFile {
  readonly #directory: string;
  /** The time in the name of the newest file that an earlier process left. */
  readonly #newestSeconds: number;
  #handle: FileHandle | undefined;
  #size = 0;

  private constructor(directory: string, newestSeconds: number) {
    this.#directory = directory;
    this.#newestSeconds = newestSeconds;
  }

  /**
   * Cuts the existing files back to `lines`, all from the first iteration on, and adds missing lines.
   * @param directory of the event files alone; made with the first line
   */
  static async open(directory: string, lines: readonly IterationMetrics[]): Promise<TensorBoardFile> {
    try {
      const names = (existsSync(directory) ? await readdir(directory) : [])
        .filter((name) => name.startsWith(NAME))
        .sort(byTime);
      let last = 0;
      for (const name of names) last = await cutBack(join(directory, name), last, lines.at(-1)?.iteration ?? 0);
      const file = new TensorBoardFile(directory, secondsOf(names.at(-1)));
      for (const line of lines) if (line.iteration > last) await file.append(line);
      return file;
    } catch (error) {
      throw writeFault(directory, "the event file", error);
    }
  }

  /** Adds an iteration. If the write fails, the file stays as it was. */
  async append(line: IterationMetrics): Promise<void> {
    try {
      const value = scalarsOf(line).map(([tag, simpleValue]) => ({ tag, simpleValue }));
      const [wallTime, step] = [Date.parse(line.wallTime) / 1000, line.iteration];
      const events: object[] = [{ wallTime, step, summary: { value } }];
      if (this.#handle === undefined) {
        events.unshift({ wallTime, fileVersion: "brain.Event:2" }, { wallTime, step, sessionLog: { status: "START" } });
        await mkdir(this.#directory, { recursive: true });
        // TensorBoard reads files in the order of their names.
        const seconds = Math.max(Math.floor(Date.now() / 1000), this.#newestSeconds + 1);
        this.#handle = await open(join(this.#directory, `${NAME}.${seconds}.longrun`), "ax");
      }
      const bytes = Buffer.concat(events.map(recordOf));
      await this.#handle.appendFile(bytes).catch(async (error: unknown) => {
        await this.#handle!.truncate(this.#size).catch(() => undefined);
        throw error;
      });
      this.#size += bytes.length;
    } catch (error) {
      throw writeFault(this.#directory, "the event file", error);
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

const secondsOf = (name: string | undefined): number => Number(name?.slice(NAME.length + 1).split(".")[0]) || 0;
const byTime = (a: string, b: string): number => secondsOf(a) - secondsOf(b);

/**
 * Cuts a file off at the first record that is torn, or of an iteration that is not above `after` or is above `upTo`.
 * @returns the newest iteration that stays in it, or `after`
 */
async function cutBack(path: string, after: number, upTo: number): Promise<number> {
  const bytes = await readFile(path);
  let [last, at] = [after, 0];
  while (at + RECORD_FRAME <= bytes.length) {
    const end = at + RECORD_FRAME + Number(bytes.readBigUInt64LE(at));
    if (maskedCrc32c(bytes.subarray(at, at + 8)) !== bytes.readUInt32LE(at + 8) || end > bytes.length) break;
    const data = bytes.subarray(at + 12, end - 4);
    if (maskedCrc32c(data) !== bytes.readUInt32LE(end - 4)) break;
    const { step = 0, summary } = Event.toObject(Event.decode(data), { longs: Number });
    if (summary !== undefined) {
      if (step <= last || step > upTo) break;
      last = step;
    }
    at = end;
  }
  if (at < bytes.length) await truncate(path, at);
  return last;
}

/** @returns tag and value of each number that the line has */
export function scalarsOf(line: IterationMetrics): [tag: string, value: number][] {
  const entries = (section: string, fields: object | undefined) =>
    Object.entries(fields ?? {}).map(([field, value]): [string, unknown] => [`${section}/${field}`, value]);
  const all = [
    ...Object.entries(SECTIONS).flatMap(([section, fields]) =>
      fields.map((field) => [`${section}/${field}`, line[field]]),
    ),
    ...RECORDS.flatMap((field) => entries(field, line[field])),
    ...Object.entries(line.tasks).flatMap(([task, fields]) => entries(`tasks/${task}`, fields)),
  ];
  return all.filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
}

/** Bytes of a record beside its data. */
const RECORD_FRAME = 16;

/** One record of a TFRecord file: its length, the length's checksum, the event, the event's checksum. */
function recordOf(event: object): Buffer {
  const data = Event.encode(Event.fromObject(event)).finish();
  const record = Buffer.alloc(data.length + RECORD_FRAME);
  record.writeBigUInt64LE(BigInt(data.length), 0);
  record.writeUInt32LE(maskedCrc32c(record.subarray(0, 8)), 8);
  record.set(data, 12);
  record.writeUInt32LE(maskedCrc32c(data), 12 + data.length);
  return record;
}

/** CRC-32C (RFC 3720, appendix B.4), reflected polynomial 0x82f63b78. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ 0x82f63b78 : remainder >>> 1;
  return remainder;
});

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff]!;
  return ~crc >>> 0;
}

/** Returns the masked CRC of TFRecord files; the mask keeps the CRC good for data that itself holds CRCs. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
