/** `longrun task generate`: draws small tasks whose answer is known, and keeps those that tell programs apart. */
import { mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeFolder } from "../../proto/folders.ts";
import { readFrame } from "../grading/frame.ts";
import { readAnswers } from "../grading/grade.ts";
import type { PromptLimits } from "../rollout/prompts.ts";
import { TaskError } from "../tasks/errors.ts";
import { type Drawn, drawTask, LEAK, leakable } from "../tasks/generate/plan.ts";
import { knownSubmission, setRewards, writeTask } from "../tasks/generate/write.ts";
import { openTask } from "../tasks/task.ts";
import { Baselines } from "./baselines.ts";
import { checkTask } from "./check.ts";
import { writeManifests } from "./generated-manifest.ts";
import { BASELINES, type Judged, judge, type Scores } from "./generated-scores.ts";

export interface GenerateOptions {
  out: string;
  count: number;
  seed: number;
  /** How many tasks have a column that gives the label away. */
  leaks: number;
  python: string;
  /** Prompts of the tasks must fit. */
  limits: PromptLimits;
  /** Rows of data in prompts. */
  rows: number;
  say: (line: string) => void;
}

/** Times that a task is drawn until its check accepts it. */
const MAX_ATTEMPTS = 40;
const LICENCE = "CC0-1.0";

/** Makes `out` with a folder for each task and a TrainingRun for each 16 tasks. @throws TaskError in one line */
export async function generateTasks(o: GenerateOptions): Promise<void> {
  const { out, count, seed, leaks, say } = o;
  if (leaks > count) throw new TaskError("input", `--leaks is ${leaks}, but --count is ${count}; give at most as many`);
  const most = leakable(seed, count).length;
  if (leaks > most)
    throw new TaskError(
      "input",
      `--leaks is ${leaks}, but the label of ${count - most} of ${count} tasks is words, which no column gives away; give at most ${most}`,
    );
  makeFolder(out, "--out");
  if (readdirSync(out).length > 0)
    throw new TaskError("folder", `--out ${out}: the folder is not empty; choose another one`);
  using baselines = new Baselines(o.python);
  const versions = await baselines.versions();
  const names: string[] = [];
  let [attempts, slowest] = [0, 0];
  for (let number = 1; number <= count; number++) {
    const faults: string[] = [];
    for (;;) {
      const drawn = drawTask(seed, number, faults.length, { count, leaking: leaks });
      const folder = join(out, drawn.plan.name);
      const made = await tryTask(folder, drawn, baselines, o);
      attempts++;
      if (typeof made !== "string") {
        names.push(drawn.plan.name);
        slowest = Math.max(slowest, made.seconds);
        writeProvenance(folder, drawn, made, versions);
        say(described(drawn, made.scores));
        break;
      }
      rmSync(folder, { recursive: true, force: true });
      faults.push(made);
      if (faults.length === MAX_ATTEMPTS)
        throw new TaskError(
          "folder",
          `task ${number} was refused ${MAX_ATTEMPTS} times, last because ${made}; try another --seed`,
        );
    }
  }
  writeFileSync(join(out, "LICENSE"), LICENCE_TEXT);
  const manifests = writeManifests(out, names);
  say(`${count} tasks of ${attempts} drawn ones; the slowest baseline takes ${slowest.toFixed(2)} s of processor time`);
  say(`${manifests.join(", ")}: runs of up to 16 tasks each`);
}

/** `seconds`: processor time of the slowest baseline, without its imports. */
type Accepted = Judged & { seconds: number };

/** Writes a task and checks it by execution. @returns why it is refused, or its scores */
async function tryTask(
  folder: string,
  drawn: Drawn,
  baselines: Baselines,
  o: GenerateOptions,
): Promise<Accepted | string> {
  const { plan, columns, target } = drawn;
  try {
    writeTask(folder, drawn);
  } catch (error) {
    if (error instanceof TaskError) return error.message;
    throw error;
  }
  const task = openTask(folder);
  using scratch = mkdtempDisposableSync(join(tmpdir(), "longrun-baselines-"));
  const honest = columns.filter(({ name }) => name !== LEAK);
  const seconds = await baselines.solve({
    folder,
    out: scratch.path,
    metric: plan.metric,
    kind: plan.kind,
    target: target.name,
    columns: Object.fromEntries(honest.map(({ name, kind }) => [name, kind])),
  });
  const answersText = readFileSync(task.answersPath);
  const submissions = {
    ...Object.fromEntries(BASELINES.map((name) => [name, readFileSync(join(scratch.path, `${name}.csv`))])),
    known: knownSubmission(drawn, task.grader, idsOf(answersText, task.grader.idColumn)),
  } as Record<keyof Scores, Buffer>;
  const judged = judge(task, readAnswers(answersText, task.grader), submissions);
  if (judged.fault) return judged.fault;
  setRewards(folder, { worst: short(judged.scores.constant), best: short(judged.scores.known) });
  // A task is never refused for its seconds: the same seed must give the same tasks on a slower machine.
  return checkFault(folder, drawn, o) ?? { ...judged, seconds: Math.max(...BASELINES.map((name) => seconds[name])) };
}

const short = (score: number) => Number(score.toPrecision(4));

function idsOf(answers: Buffer, idColumn: string): string[] {
  const frame = readFrame(answers, { bytes: 2 ** 30, rows: 2 ** 20 });
  if ("reason" in frame) throw new Error(frame.reason.message); // it was written here
  const column = frame.column(idColumn)!;
  return Array.from({ length: column.rows }, (_, row) => column.cell(row));
}

/** Returns what `longrun task check` has against the folder: an error, a leak that is not wanted, or none where one is. */
function checkFault(folder: string, { plan }: Drawn, { rows, limits }: GenerateOptions): string | undefined {
  const { findings, prompt } = checkTask(folder, { rows, limits, exact: false });
  const error = findings.find(({ severity }) => severity === "error");
  if (error) return error.problem;
  if (!prompt || prompt.cut.length > 0) return `its prompt does not fit into ${limits.maxPromptTokens} tokens`;
  const leak = findings.find(({ problem }) => problem.includes("gives the label away"));
  if (leak && !plan.leaks) return leak.problem;
  if (!leak && plan.leaks) return `the check does not see the column ${LEAK}, which gives the label away`;
  return undefined;
}

function writeProvenance(folder: string, { plan }: Drawn, { scores, differences }: Judged, versions: object): void {
  const { name, ...drawn } = plan;
  const provenance = {
    madeBy: `longrun task generate (seed ${plan.seed}, number ${plan.number}, attempt ${plan.attempt})`,
    licence: LICENCE,
    synthetic: true,
    drawn,
    scores: Object.fromEntries(Object.entries(scores).map(([baseline, score]) => [baseline, short(score)])),
    differencesInDeviationsOfTheNoise: Object.fromEntries(
      Object.entries(differences).map(([pair, value]) => [pair, Number(value.toPrecision(2))]),
    ),
    checkedWith: versions,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "provenance.json"), `${JSON.stringify(provenance, null, 2)}\n`);
}

function described({ plan }: Drawn, scores: Scores): string {
  const shown = [...BASELINES, "known" as const].map((name) => `${name} ${short(scores[name])}`).join(", ");
  const notes = [plan.leaks && "leaks", plan.attempt > 0 && `drawn ${plan.attempt + 1} times`].filter(Boolean);
  const said = notes.length > 0 ? ` (${notes.join(", ")})` : "";
  return `${plan.name}: ${plan.metric}, ${plan.rows} rows; ${shown}${said}`;
}

const LICENCE_TEXT = `These tables were drawn by a random generator (longrun task generate). They hold no data of others.
CC0 1.0 Universal: to the extent possible under law, all rights to them are waived.
https://creativecommons.org/publicdomain/zero/1.0/
`;
