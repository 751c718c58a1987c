/** Reads the run folder for the report. Everything but the manifest may be missing: the run may be young. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { Algorithm } from "../../crds/trainingrun.ts";
import { SOLVE_FILE } from "../../proto/solve.ts";
import type { BestSample } from "../evaluation/best.ts";
import { WHENS } from "../evaluation/rows.ts";
import { readIfThere } from "../metrics/files.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { readMetrics } from "../metrics/jsonl.ts";
import { type Evaluation, evaluationsOf, readSummary, type When } from "../metrics/summary.ts";
import { readSearch } from "../solve/record.ts";

const POLICIES_FILE = "policies.json";

/** A fault of the report or of the run folder that it reads. `code` is stable; the message says what to do. */
export class ReportError extends Error {
  override readonly name = "ReportError";
  readonly code: "run-folder" | "arguments" | "write";

  constructor(code: ReportError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The fields of a resolved `trainingrun.yaml` that the report interprets; all others are shown unchanged. */
interface RunManifest {
  metadata?: { name?: string };
  spec?: {
    tasks?: { name?: string; grader?: { metric?: string; direction?: "Higher" | "Lower" } }[];
    model?: { policy?: string };
    algorithm?: Partial<Pick<Algorithm, "durationWeighting" | "collection" | "baseline">>;
    stopping?: { iterations?: number };
  };
}

export type RunFolder = Awaited<ReturnType<typeof readRunFolder>>;
export type ReportedTask = RunFolder["tasks"][number];
export type BestProgram = NonNullable<Awaited<ReturnType<typeof readBest>>>;

/** Throws `ReportError` with code `run-folder` if the folder is no run folder, or a file in it is damaged. */
export async function readRunFolder(directory: string) {
  const manifestPath = join(directory, "trainingrun.yaml");
  const manifestText = await readText(manifestPath);
  if (manifestText === undefined) {
    const what = existsSync(directory) ? "has no trainingrun.yaml" : "does not exist";
    throw new ReportError("run-folder", `${directory} ${what}; name the folder of a run, for example runs/NAME-TIME`);
  }
  const manifest = (await parsed(manifestPath, () => parse(manifestText) as RunManifest | null)) ?? {};
  const summary = await parsed(join(directory, "summary.json"), () => readSummary(directory));
  const lines = await readMetrics(join(directory, "metrics.jsonl"));
  const tasks = reportedTasks(manifest, lines.at(-1));
  return {
    directory,
    name: manifest.metadata?.name ?? "run",
    manifest,
    manifestText,
    tasks,
    lines,
    summary,
    best: await bestOf(directory, tasks),
    evaluation: await parsed(join(directory, "evaluation"), () => readEvaluation(directory)),
    search: await parsed(join(directory, SOLVE_FILE), () => readSearch(directory, summary?.solve?.sessions ?? [])),
    // Nothing is trained in a folder that `longrun evaluate` or `longrun solve` made.
    trains: ![POLICIES_FILE, SOLVE_FILE].some((file) => existsSync(join(directory, file))),
  };
}

/** The manifest does not contain a bundled task's grader; the lines of metrics have the needed parts. */
function reportedTasks({ spec }: RunManifest, line: IterationMetrics | undefined) {
  return (spec?.tasks ?? []).map(({ name = "", grader }) => {
    const measured = line?.tasks[name];
    const direction = grader?.direction ?? measured?.direction;
    const metric = grader?.metric ?? measured?.metric ?? "score";
    return { name, metric, better: direction && ({ Lower: "lower", Higher: "higher" } as const)[direction] };
  });
}

/** The best program of each task that has one. */
async function bestOf(directory: string, tasks: readonly { name: string }[]) {
  const found: { task: string; best: BestProgram }[] = [];
  for (const { name } of tasks) {
    const own = await readBest(join(directory, "best", name));
    const best = own ?? (tasks.length === 1 ? await readBest(join(directory, "best")) : undefined);
    if (best) found.push({ task: name, best });
  }
  return found;
}

/** Reads the result of `longrun evaluate` (in `evaluation/` of a run folder), else of the run's own evaluation phase. */
async function readEvaluation(directory: string) {
  for (const place of [join(directory, "evaluation"), directory]) {
    const { evaluation, state } = (await readSummary(place)) ?? {};
    const done = evaluation ? evaluationsOf(evaluation).filter(({ settings }) => settings) : [];
    if (done.length === 0) continue;
    const tasks: { evaluation: Evaluation; programs: Awaited<ReturnType<typeof programsOf>> }[] = [];
    for (const each of done) {
      const folder = join(place, "programs", ...(evaluation?.tasks ? [each.settings!.task] : []));
      tasks.push({ evaluation: each, programs: await programsOf(each, folder) });
    }
    // The evaluation is unfinished: it runs, or was stopped.
    return { tasks, unfinished: place !== directory && state !== "succeeded" };
  }
  return undefined;
}

async function programsOf(evaluation: Evaluation, folder: string) {
  const programs: { title: string; best: BestProgram }[] = [];
  for (const when of WHENS)
    for (const [kind, how] of Object.entries({ scratch: "from scratch", improve: "improving another" })) {
      const best = evaluation[when] && (await readBest(join(folder, `${when}-${kind}`)));
      if (best) programs.push({ title: `${POLICIES[when]}, ${how}`, best });
    }
  return programs;
}

const POLICIES: Record<When, string> = { before: "before training", after: "after training", model: "of the model" };

async function readBest(directory: string) {
  const program = await readText(join(directory, "program.py"));
  if (program === undefined) return undefined;
  const score = await readText(join(directory, "score.json"));
  const facts = await parsed(join(directory, "score.json"), () => JSON.parse(score ?? "{}") as Partial<BestSample>);
  return { program, output: (await readText(join(directory, "output.txt"))) ?? "", facts };
}

async function parsed<T>(path: string, parseIt: () => T | Promise<T>): Promise<T> {
  try {
    return await parseIt();
  } catch (error) {
    const line = (error as Error).message.split("\n")[0];
    throw new ReportError("run-folder", `${path} cannot be read: ${line}`, { cause: error });
  }
}

const readText = (path: string) => parsed(path, () => readIfThere(path));
