/**
 * Measures the best score of the pretraining corpus alone: executes its correct programs on the task and writes the best score beside the
 * policy, so that a report can show whether reinforcement learning found something better.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { findPublicData } from "../../actor/tasks.ts";
import { makeCorpus, programHash } from "../../learner/pretrain/corpus.ts";
import { family } from "../../learner/rollout/family.ts";
import { openTask } from "../../learner/tasks/task.ts";
import { benchEnvironment } from "./environment.ts";
import { type Bench, median } from "./result.ts";

const POLICY = new URL("../../manifests/quickstart/policy/", import.meta.url);

async function run(flags: string[]) {
  const { values } = parseArgs({ args: flags, options: { limit: { type: "string", default: "100000" } } });
  const { python, taskDirectory } = await benchEnvironment();
  const task = openTask(taskDirectory);
  const { seed, texts, improveShare, mistakeShare } = JSON.parse(
    await readFile(new URL("corpus.json", POLICY), "utf8"),
  ) as Parameters<typeof makeCorpus>[0];
  const distinct = new Map<string, string>();
  for (const text of makeCorpus({ seed, texts, improveShare, mistakeShare })) {
    if (text.task === task.name && text.mistake === undefined)
      distinct.set(programHash(text.program).toString("hex"), text.program);
  }
  const programs = [...distinct.values()].slice(0, Number(values.limit));

  const inputs = await findPublicData(taskDirectory);
  const space = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  const { sandbox } = await startIsolated({ python, inputs, space });
  const limits = {
    ...DEFAULT_LIMITS,
    timeoutSeconds: task.spec.executionTimeoutSeconds,
    memoryBytes: task.spec.executionMemoryBytes,
  };
  const valid: { score: number; family: string; program: string; durationSeconds: number }[] = [];
  try {
    for (const [index, program] of programs.entries()) {
      const result = await execute(sandbox, {
        task: task.name,
        program: Buffer.from(program),
        nonce: "",
        limits,
        seed: 0,
      });
      const graded = result.submission && result.outcome === "completed" ? task.grade(result.submission) : undefined;
      if (graded?.valid && graded.score !== undefined)
        valid.push({ score: graded.score, family: family(program), program, durationSeconds: result.durationSeconds });
      if (index % 100 === 99) process.stderr.write(`  ${index + 1} of ${programs.length} programs\n`);
    }
  } finally {
    await sandbox.stop();
    await rm(space, { recursive: true, force: true });
  }

  const sign = task.grader.direction === "Higher" ? -1 : 1;
  valid.sort((a, b) => sign * (a.score - b.score));
  const [best] = valid;
  if (best === undefined) throw new Error("no program of the corpus is valid on this task");
  const found = { score: best.score, family: best.family, executed: programs.length };
  if (programs.length === distinct.size)
    await writeFile(new URL("corpus-best.json", POLICY), `${JSON.stringify({ [task.name]: found }, null, 2)}\n`);
  const rows = Map.groupBy(valid, (entry) => entry.family)
    .entries()
    .map(([name, entries]) => ({
      family: name,
      programs: entries.length,
      best: entries[0]!.score.toFixed(1),
      median: median(entries.map(({ score }) => score)).toFixed(1),
      seconds: median(entries.map(({ durationSeconds }) => durationSeconds)).toFixed(2),
    }))
    .toArray();
  const method = `${programs.length} distinct programs of the corpus without a mistake, ${task.name}, ${task.grader.metric}; ${valid.length} valid`;
  return { rows, goals: [], method, raw: { ...found, program: best.program, scores: valid.map(({ score }) => score) } };
}

export const corpus: Bench = { about: "the best score that a program of the pretraining corpus reaches", run };
