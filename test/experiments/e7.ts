/**
 * E7: a real pretrained model (SmolLM2-135M-Instruct, ../real/model.ts) that writes no valid program. A warm start on programs for other tasks,
 * then RL on a task that they were not written for; beside it the same with learning rate 0, and the same without the warm start. Then what
 * partial credit, improve prompts and debug prompts change after the same warm start.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeCorpus } from "../../learner/pretrain/corpus.ts";
import { exampleLine } from "../../learner/sft/examples.ts";
import { ensureRealModel } from "../real/model.ts";
import { ARMS, type Arm, MAIN, OTHERS } from "./e7-arms.ts";
import { e7Findings, type Row } from "./e7-page.ts";
import type { AskedRun } from "./execute.ts";
import { readFacts } from "./facts.ts";
import { gridFlags, runGrid } from "./grid.ts";
import type { Experiment, Findings } from "./result.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

const TASK: SmallTask = { name: "diamonds", train: 2000, test: 1000 };
/** Tasks of the warm start's programs: not `TASK`. */
const OTHER_TASKS = ["movie", "wage"];
const SFT = fileURLToPath(new URL("../../learner/commands/sft-command.ts", import.meta.url));

/** What a rehearsal has smaller than the experiment. */
interface Scale {
  /** Folder of the model before the warm start. */
  model: string;
  /** Flags of `longrun sft`. */
  sft: string[];
  programs: number;
  /** Settings of every run. */
  set: string[];
  /** Estimated seconds of a warm start and of a run, on two quiet cores. */
  guessSeconds: { warm: number; run: number };
}

const REAL: Omit<Scale, "model"> = {
  programs: 60,
  // as in learner/sft/README.md
  sft: [
    ...["--epochs", "1", "--batch-size", "3", "--micro-batch-size", "3"],
    ...["--learning-rate", "1.5e-4", "--held-out", "0.1"],
  ],
  set: [],
  guessSeconds: { warm: 200, run: 1200 },
};

type Cell = AskedRun & { arm: Arm | undefined };

export const e7: Experiment = {
  question:
    "Does a real model that writes no valid program learn a task after a warm start on programs for other tasks?",
  async run(flags) {
    return e7At({ ...REAL, model: await ensureRealModel() }, flags);
  },
};

/** Makes the runs of all arms, main ones first, and the page. */
export async function e7At(scale: Scale, flags: string[]): Promise<Findings> {
  const given = gridFlags(flags, { budget: "1h", seeds: 3 });
  await prepareSmallTask(TASK);
  const seeds = Array.from({ length: given.seeds }, (_, seed) => seed);
  const warmOf = (seed: number) => join(given.runs, `E7/warm-start-${seed}`);
  const cells = (arms: readonly Arm[]) =>
    seeds.flatMap((seed) => arms.map((arm) => runOf(arm, seed, warmOf(seed), scale)));
  const warm = seeds.map((seed) => warmStart(seed, scale));
  // a seed's warm start comes before the first run that needs it
  const runs = [
    ...seeds.flatMap((seed) => [warm[seed]!, ...cells(MAIN).filter((run) => run.seed === seed)]),
    ...cells(OTHERS),
  ];
  const ran = await runGrid("E7", runs, given);
  const rows: Row[] = [];
  for (const [run, directory] of [...ran.directories, ...ran.begun]) {
    if (run.arm === undefined || !existsSync(join(directory, "metrics.jsonl"))) continue;
    const facts = await readFacts(directory);
    const isFinished = ran.directories.has(run);
    const cpuSeconds = ran.cpuSeconds.get(run) ?? null;
    rows.push({ world: TASK.name, arm: run.arm, seed: run.seed, facts, isFinished, cpuSeconds });
  }
  return e7Findings(rows, ran);
}

function warmStart(seed: number, { model, programs, sft, guessSeconds }: Scale): Cell {
  return {
    ...{ arm: undefined, seed, kind: "warm start", manifest: "", guessSeconds: guessSeconds.warm, resumes: true },
    folder: `E7/warm-start-${seed}`,
    set: [model, `programs=${programs}`, `tasks=${OTHER_TASKS}`, ...sft],
    words(directory) {
      const data = join(directory, "programs.jsonl");
      mkdirSync(directory, { recursive: true });
      const corpus = { seed, texts: programs, mistakeShare: 0, improveShare: 0.25, tasks: OTHER_TASKS };
      const lines = makeCorpus(corpus).map(({ messages, response }) => exampleLine({ prompt: messages, response }, {}));
      writeFileSync(data, lines.join(""));
      const where = ["--model", model, "--data", data, "--out", join(directory, "model"), "--seed", String(seed)];
      return [process.execPath, SFT, ...where, ...sft];
    },
  };
}

function runOf(arm: Arm, seed: number, warm: string, { model, set, guessSeconds }: Scale): Cell {
  const policy = arm === "no warm start" ? model : join(warm, "model");
  return {
    ...{ arm, seed, kind: arm, manifest: "E7.yaml", guessSeconds: guessSeconds.run, resumes: true },
    folder: `E7/${arm} ${seed}`.replaceAll(" ", "-"),
    set: [`tasks=${JSON.stringify([smallTask(TASK)])}`, `model.policy=${policy}`, `seed=${seed}`, ...set, ...ARMS[arm]],
  };
}
