/** The folder of a supervised training: its settings, its lines of metrics, its newest checkpoint, and at the end the model. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../proto/folders.ts";
import type { Engine } from "../engine/index.ts";
import type { FineTuneStep, HeldOut } from "./fine-tune.ts";

const RECORD = "sft.json";
const LINES = "sft.jsonl";
const CHECKPOINTS = "checkpoints";
const STATE = "state.json";
const MODEL = "model.partial";
/** Checkpoints take at most this share of the time, unless a person sets the seconds between them. */
const CHECKPOINT_SHARE = 0.1;

/** What training in a folder began with; it cannot change. */
export type Settings = Readonly<Record<string, string | number | boolean | null>>;

/** A line of sft.jsonl. */
export type Line = ({ kind: "step" } & FineTuneStep) | ({ kind: "heldOut" } & HeldOut);

interface State {
  step: number;
  digest: string;
}

interface FolderRecord {
  settings: Settings;
  state: "running" | "finished";
}

export class FolderError extends Error {}

/** Whether training in a folder is over. */
export function isFinished(path: string): boolean {
  const record = join(path, RECORD);
  return existsSync(record) && (JSON.parse(readFileSync(record, "utf8")) as FolderRecord).state === "finished";
}

export class WorkFolder {
  readonly path: string;
  readonly #record: FolderRecord;
  readonly #checkpointSeconds: number | undefined;
  #lines: Line[];
  #sinceMs = performance.now();
  #writingSeconds = 0;

  /**
   * Opens a folder, or begins one.
   *
   * @param remedy of other settings, and of a folder of something else
   * @param checkpointSeconds least seconds between two checkpoints; 0: after each step. Default: so many that they take a tenth of the time
   * @throws FolderError for a folder of something else, or of training with other settings
   */
  constructor(path: string, settings: Settings, remedy: string, checkpointSeconds?: number) {
    this.path = path;
    this.#checkpointSeconds = checkpointSeconds;
    const record = join(path, RECORD);
    if (existsSync(record)) {
      this.#record = JSON.parse(readFileSync(record, "utf8")) as FolderRecord;
      for (const [name, value] of Object.entries(settings)) {
        const before = this.#record.settings[name] ?? null;
        if (before === value) continue;
        throw new FolderError(
          `${path} was begun with ${name} ${before}, now it is ${value}; give what it was, or ${remedy}`,
        );
      }
    } else {
      if (existsSync(path) && readdirSync(path).length > 0)
        throw new FolderError(
          `--out ${path}: the folder has other files; give a new folder, or one that longrun sft began`,
        );
      makeFolder(path, "--out");
      this.#record = { settings, state: "running" };
      this.#writeRecord();
    }
    const lines = join(path, LINES);
    const text = existsSync(lines) ? readFileSync(lines, "utf8") : "";
    // a line that a killed process did not finish is dropped
    this.#lines = text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  }

  get isFinished(): boolean {
    return this.#record.state === "finished";
  }

  get lines(): readonly Line[] {
    return this.#lines;
  }

  /** The newest step after which held-out examples were measured. */
  get measured(): number | undefined {
    return this.#lines.findLast(({ kind }) => kind === "heldOut")?.step;
  }

  append(line: Line): void {
    this.#lines.push(line);
    appendFileSync(join(this.path, LINES), `${JSON.stringify(line)}\n`);
  }

  /**
   * Loads the newest whole checkpoint, and forgets lines of later steps. @returns its step, 0 without one
   * @param onInvalid called with the reason why a checkpoint is not used
   */
  async resume(engine: Engine, onInvalid: (reason: string) => void): Promise<number> {
    let step = 0;
    for (const name of this.#checkpoints()) {
      const folder = join(this.path, CHECKPOINTS, name);
      try {
        const state = JSON.parse(readFileSync(join(folder, STATE), "utf8")) as State;
        await engine.load(folder);
        if ((await engine.digest()) !== state.digest) throw new Error("its digest is another");
        step = state.step;
        break;
      } catch (cause) {
        onInvalid(`checkpoint ${name} is not used: ${(cause as Error).message}`);
      }
    }
    this.#lines = this.#lines.filter((line) => line.step <= step);
    writeFileSync(join(this.path, LINES), this.#lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return step;
  }

  /** Whether a checkpoint is due after a step. */
  get isDue(): boolean {
    const least = this.#checkpointSeconds ?? this.#writingSeconds / CHECKPOINT_SHARE;
    return (performance.now() - this.#sinceMs) / 1000 >= least;
  }

  /** Writes a checkpoint whole or not at all, and removes the one before. */
  async checkpoint(engine: Engine, step: number): Promise<void> {
    const began = performance.now();
    const name = String(step).padStart(8, "0");
    const folder = join(this.path, CHECKPOINTS, name);
    const partial = `${folder}.partial`;
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial, { recursive: true });
    const { digest } = await engine.save(partial);
    writeFileSync(join(partial, STATE), `${JSON.stringify({ step, digest } satisfies State)}\n`, { flush: true });
    rmSync(folder, { recursive: true, force: true });
    renameSync(partial, folder);
    for (const other of readdirSync(join(this.path, CHECKPOINTS)))
      if (other !== name) rmSync(join(this.path, CHECKPOINTS, other), { recursive: true });
    this.#sinceMs = performance.now();
    this.#writingSeconds = (this.#sinceMs - began) / 1000;
  }

  /** Writes the policy into the folder itself, a model folder or an adapter of PEFT, and removes the checkpoint. */
  async finish(engine: Engine): Promise<void> {
    const partial = join(this.path, MODEL);
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(partial);
    await engine.savePolicy(partial);
    // a model that was trained here before has such files of its own
    for (const name of readdirSync(partial).filter((name) => name !== RECORD && name !== LINES)) {
      rmSync(join(this.path, name), { recursive: true, force: true });
      renameSync(join(partial, name), join(this.path, name));
    }
    rmSync(partial, { recursive: true, force: true });
    this.#record.state = "finished";
    this.#writeRecord();
    rmSync(join(this.path, CHECKPOINTS), { recursive: true, force: true });
  }

  /** Names of the checkpoints, newest first. */
  #checkpoints(): string[] {
    const folder = join(this.path, CHECKPOINTS);
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .sort()
      .reverse();
  }

  #writeRecord(): void {
    const path = join(this.path, RECORD);
    writeFileSync(`${path}.new`, `${JSON.stringify(this.#record, null, 2)}\n`, { flush: true });
    renameSync(`${path}.new`, path);
  }
}
