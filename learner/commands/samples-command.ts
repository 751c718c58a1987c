/** The samples of a run folder as one JSON value, for `longrun samples`. The store is only read. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Values } from "../../proto/command-line.ts";
import { errorOf } from "../metrics/common-errors.ts";
import { exampleLine } from "../sft/examples.ts";
import { examplesOfRun } from "../sft/run-examples.ts";
import { openStore } from "../store/store.ts";
import type { PrivateScore, Sample } from "../store/types.ts";
import { InputError, printLine, runCommand, whole } from "./command.ts";

const SAMPLES = {
  name: "samples-command.ts",
  description: "Prints the samples of a run folder in the order of dispatch, without texts.",
  options: {
    "run <RUN>": { help: "run folder", required: "a run folder" },
    failed: "only samples that are graded and not valid",
    "show <ID>": "one sample with its solution, program, terminal output and grade",
    "export <FILE>": "write the valid samples as lines of messages; prints how many are left out, and why",
    "best <N>": { help: "with --export: so many of each task", as: whole(1) },
  },
} as const;

function samples(values: Values<typeof SAMPLES.options>): void {
  const { run } = values;
  const path = join(run, "store.sqlite");
  if (!existsSync(path)) {
    const problem = existsSync(run) ? "this is no run folder: it has no store.sqlite" : "there is no such run folder";
    throw new InputError(`${run}: ${problem}`);
  }
  if (values.export !== undefined) {
    printLine(exportSamples(run, values.export, values.best));
    return;
  }
  const store = openStore(path, { readOnly: true });
  try {
    if (values.show === undefined) printLine(store.allSamples(values).map(listed));
    else {
      const sample = find(values.show, (id) => store.sample(id), run);
      printLine(shown(sample, store.privateScore(sample.id)));
    }
  } finally {
    store.close();
  }
}

/** Writes valid samples as examples of supervised training. @returns how many, and how many are left out */
function exportSamples(run: string, file: string, best: number | undefined) {
  const { examples, leftOut } = examplesOfRun(run, best);
  const lines = examples.map(({ prompt, response, sample: { id, task, kind, grade } }) =>
    exampleLine({ prompt, response }, { task, kind, sample: id, score: grade?.score, reward: grade?.reward }),
  );
  try {
    writeFileSync(file, lines.join(""));
  } catch (cause) {
    throw new InputError(`--export: ${(cause as Error).message}`, { cause });
  }
  return { file, samples: examples.length, leftOut };
}

function find(id: string, sample: (id: string) => Sample | undefined, run: string): Sample {
  const found = sample(id);
  if (found) return found;
  throw new InputError(`--show ${id}: there is no such sample in ${run}; longrun samples ${run} lists them`);
}

function listed(sample: Sample) {
  const { id, iteration: policyIteration, usedIteration, purpose, task, kind, state, grade, result } = sample;
  const { valid = false, score = null, reward = null, clamped = false, guards = [] } = grade ?? {};
  const durationSeconds = result?.durationSeconds ?? null;
  const error = grade && !valid ? errorOf(sample) : "";
  return {
    id,
    purpose,
    policyIteration,
    trainedIn: usedIteration ?? null,
    task,
    kind,
    state,
    valid,
    score,
    reward,
    clamped,
    guards,
    durationSeconds,
    error,
  };
}

function shown(sample: Sample, privateScore: PrivateScore | undefined) {
  const { plan, solution, program = null, instrumenter, previous = null, depth = 0, result, grade } = sample;
  const { outcome = null, exitStatus = null, detail = "", markers = [], terminalOutput = "" } = result ?? {};
  return {
    ...listed(sample),
    ...(privateScore && { privateScore: privateScore.score ?? privateScore.reason }),
    reason: grade?.reason ?? "",
    outcome,
    exitStatus,
    detail,
    previous,
    depth,
    instrumenter,
    markers: markers.map(({ name }) => name),
    plan,
    program,
    solution,
    terminalOutput,
  };
}

await runCommand(SAMPLES, samples);
