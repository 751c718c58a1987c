/** Reads what the report shows of a run folder. Everything but the manifest may be missing: the run may be young. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { Algorithm } from "../../crds/trainingrun.ts";
import type { BestSample } from "../evaluation/best.ts";
import { WHENS } from "../evaluation/rows.ts";
import { readIfThere } from "../metrics/files.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { readMetrics } from "../metrics/jsonl.ts";
import { readSummary, type When } from "../metrics/summary.ts";

/** A fault of the report or of the run folder that it reads. `code` is stable; the message says what to do. */
export class ReportError extends Error {
  override readonly name = "ReportError";
  readonly code: "run-folder" | "arguments" | "write";

  constructor(code: ReportError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The fields of a resolved `trainingrun.yaml` that the report speaks of; the rest is shown as it stands. */
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
export type BestProgram = NonNullable<RunFolder["best"]>;

/** Throws `ReportError` with code `run-folder` if this is none, or a file in it is damaged. */
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
  return {
    directory,
    name: manifest.metadata?.name ?? "run",
    manifest,
    manifestText,
    tasks: reportedTasks(manifest, lines.at(-1)),
    lines,
    summary,
    best: await readBest(join(directory, "best")),
    evaluation: await parsed(join(directory, "evaluation"), () => readEvaluation(directory)),
    // Nothing is trained in a folder that `longrun evaluate` made.
    trains: !existsSync(join(directory, "policies.json")),
  };
}

/** A bundled task's grader does not stand in the manifest; the lines of metrics have what is needed of it. */
function reportedTasks({ spec }: RunManifest, line: IterationMetrics | undefined) {
  return (spec?.tasks ?? []).map(({ name = "", grader }) => {
    const measured = line?.tasks[name];
    const direction = grader?.direction ?? measured?.direction;
    const metric = grader?.metric ?? measured?.metric ?? "score";
    return { name, metric, better: direction && ({ Lower: "lower", Higher: "higher" } as const)[direction] };
  });
}

/** What `longrun evaluate` found out (in `evaluation/` of a run folder), else the run's own evaluation phase. */
async function readEvaluation(directory: string) {
  for (const place of [join(directory, "evaluation"), directory]) {
    const { evaluation, state } = (await readSummary(place)) ?? {};
    if (!evaluation?.settings) continue;
    const programs: { title: string; best: NonNullable<Awaited<ReturnType<typeof readBest>>> }[] = [];
    for (const when of WHENS)
      for (const [kind, how] of Object.entries({ scratch: "from scratch", improve: "improving another" })) {
        const best = evaluation[when] && (await readBest(join(place, "programs", `${when}-${kind}`)));
        if (best) programs.push({ title: `${POLICIES[when]}, ${how}`, best });
      }
    // Unfinished: it goes on, or was stopped.
    return { evaluation, unfinished: place !== directory && state !== "succeeded", programs };
  }
  return undefined;
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
