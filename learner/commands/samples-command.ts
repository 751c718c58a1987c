/** The samples of a run folder as one JSON value, for `longrun samples` (`USAGE`). The store is only read. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { errorOf } from "../metrics/common-errors.ts";
import { openStore } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import { InputError, printLine, required, runCommand } from "./command.ts";

const USAGE = `node learner/commands/samples-command.ts --run DIR [--failed] [--show ID]
    Prints the samples of a run folder in the order of dispatch, without texts; --failed: those that are graded and not
    valid. --show: one sample with its solution, program, terminal output and grade.`;

const options = {
  run: { type: "string" },
  failed: { type: "boolean", default: false },
  show: { type: "string" },
} as const;

function samples(): void {
  const { values } = parseArgs({ options });
  const run = required(values.run, "--run", "a run folder");
  const path = join(run, "store.sqlite");
  if (!existsSync(path)) {
    const problem = existsSync(run) ? "this is no run folder: it has no store.sqlite" : "there is no such run folder";
    throw new InputError(`${run}: ${problem}`);
  }
  const store = openStore(path, { readOnly: true });
  try {
    if (values.show === undefined) printLine(store.allSamples(values).map(listed));
    else printLine(shown(find(values.show, (id) => store.sample(id), run)));
  } finally {
    store.close();
  }
}

function find(id: string, sample: (id: string) => Sample | undefined, run: string): Sample {
  const found = sample(id);
  if (found) return found;
  throw new InputError(`--show ${id}: there is no such sample in ${run}; longrun samples ${run} lists them`);
}

/** The fields of a line. */
function listed(sample: Sample) {
  const { id, iteration: policyIteration, usedIteration, purpose, task, kind, state, grade, result } = sample;
  const { valid = false, score = null, reward = null, clamped = false, guards = [] } = grade ?? {};
  const durationSeconds = result?.durationSeconds ?? null;
  const error = grade && !valid ? errorOf(sample) : "";
  return {
    ...{ id, purpose, policyIteration, trainedIn: usedIteration ?? null, task, kind, state },
    ...{ valid, score, reward, clamped, guards, durationSeconds, error },
  };
}

function shown(sample: Sample) {
  const { plan, solution, program = null, instrumenter, previous = null, depth = 0, result, grade } = sample;
  const { outcome = null, exitStatus = null, detail = "", markers = [], terminalOutput = "" } = result ?? {};
  return {
    ...listed(sample),
    ...{ reason: grade?.reason ?? "", outcome, exitStatus, detail, previous, depth, instrumenter },
    ...{ markers: markers.map(({ name }) => name), plan, program, solution, terminalOutput },
  };
}

await runCommand(USAGE, samples);
