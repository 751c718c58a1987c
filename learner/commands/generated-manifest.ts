/** TrainingRuns for generated tasks. */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, stringify } from "yaml";

/** spec.tasks holds so many. */
const MOST_TASKS = 16;

/** Settings of the quickstart; another policy writes better programs for these tasks. */
const SPEC = {
  model: { policy: "quickstart", temperature: 0.8, maxPromptTokens: 256, maxResponseTokens: 256 },
  prompts: { style: "Short" },
  algorithm: {
    ...{ batchSize: 32, miniBatchSize: 4, microBatchSize: 4, learningRate: 3e-4, criticLearningRate: 3e-4 },
    ...{ validScoreWeight: 0.5, baseline: "BatchMean", normalizeBy: "Task", durationWeighting: "Completion" },
  },
  learner: { threads: 1 },
  actors: { min: 1, max: 1, slots: 1 },
  evaluation: { samples: 4 },
  stopping: { iterations: 12 },
};

const HEAD = `# Made by longrun task generate. The paths are relative to this file.
#
#   longrun run FILE
#
# The policy is the bundled one, which was pretrained on programs for other tasks: set model.policy to a model of yours.
`;

/** Writes a TrainingRun for each 16 tasks. @returns the names of the files */
export function writeManifests(out: string, names: readonly string[]): string[] {
  const groups = Array.from({ length: Math.ceil(names.length / MOST_TASKS) }, (_, i) =>
    names.slice(MOST_TASKS * i, MOST_TASKS * (i + 1)),
  );
  return groups.map((group, i) => {
    const suffix = groups.length === 1 ? "" : `-${i + 1}`;
    const tasks = group.map((name) => ({
      ...(parse(readFileSync(join(out, name, "task.yaml"), "utf8")) as object),
      publicData: { path: `${name}/prepared/public` },
      privateData: { path: `${name}/prepared/private` },
    }));
    const run = {
      apiVersion: "longrun.dev/v1alpha1",
      kind: "TrainingRun",
      metadata: { name: `generated${suffix}` },
      spec: { seed: 0, tasks, ...SPEC },
    };
    const file = `trainingrun${suffix}.yaml`;
    writeFileSync(join(out, file), HEAD.replace("FILE", join(basename(out), file)) + stringify(run));
    return file;
  });
}
