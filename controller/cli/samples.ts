/** `longrun samples`: lists a run's samples and their results. The learner reads the store. */
import { ControllerError, EXIT } from "../errors.ts";
import { harmless } from "../harmless.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { significant } from "../local/terminal/terminal.ts";
import { askPart } from "../part-process.ts";
import type { Parts } from "../parts.ts";
import type { SamplesOptions } from "./run-folder-options.ts";

/** A sample in the output of `longrun samples --json`. */
interface ListedSample {
  id: string;
  purpose: string;
  /** Version of the policy that wrote it. */
  policyIteration: number;
  /** Iteration that trained on it, as the rows of `longrun run` count; null: none so far. */
  trainedIn: number | null;
  task: string;
  kind: string;
  state: string;
  valid: boolean;
  score: number | null;
  reward: number | null;
  clamped: boolean;
  guards: string[];
  durationSeconds: number | null;
  error: string;
}

/** @returns the exit status */
export async function showSamples(run: string, options: SamplesOptions, parts: Parts, screen: Screen): Promise<number> {
  const { failed, show, json } = options;
  if (options.export !== undefined) return exportSamples(run, options.export, options, parts, screen);
  if (options.best !== undefined)
    throw new ControllerError("input", "--best is of --export; give that too, or leave it out");
  const args = ["--run", run, ...(failed ? ["--failed"] : []), ...(show === undefined ? [] : ["--show", show])];
  const found = await askPart<ListedSample[] | Record<string, unknown>>(parts.samples, args);
  if (json) for (const line of Array.isArray(found) ? found : [found]) screen.write(`${JSON.stringify(line)}\n`);
  else screen.write(harmless(Array.isArray(found) ? listed(found, run) : shown(found)));
  return EXIT.done;
}

interface Exported {
  file: string;
  samples: number;
  leftOut: { invalid: number; flagged: number; alike: number; beaten: number };
}

async function exportSamples(
  run: string,
  file: string,
  { best, json }: SamplesOptions,
  parts: Parts,
  screen: Screen,
): Promise<number> {
  const args = ["--run", run, "--export", file, ...(best === undefined ? [] : ["--best", best])];
  const exported = await askPart<Exported>(parts.samples, args);
  const { samples, leftOut } = exported;
  const { invalid, flagged, alike, beaten } = leftOut;
  const left = `${invalid} not valid, ${flagged} flagged, ${alike} the same program as a better one, ${beaten} not the best`;
  if (json) screen.write(`${JSON.stringify(exported)}\n`);
  else screen.write(harmless(`${file}: ${samples} samples; left out: ${left}\n`));
  return EXIT.done;
}

/** What a sample without a grade waits for. */
const STATES: Readonly<Record<string, string>> = {
  queued: "waits for an actor",
  leased: "runs",
  finished: "has run, is not graded yet",
  notExecuted: "no program to run, is not graded yet",
  lost: "lost: its executions did not end",
  discarded: "discarded before it ended",
};

const HEADS = ["id", "trained in", "task", "prompt", "score", "reward", "duration", "result"];

function listed(samples: readonly ListedSample[], run: string): string {
  if (samples.length === 0) return "No such sample.\n";
  const rows = samples.map(
    ({ id, trainedIn, task, kind, state, valid, score, reward, clamped, guards, durationSeconds, error }) => {
      const notes = [...guards.map((guard) => `flagged: ${guard}`), ...(clamped ? ["at rewardFloor"] : [])];
      const result = valid ? ["valid", ...notes].join(", ") : error || (STATES[state] ?? state);
      const duration = durationSeconds === null ? "-" : `${durationSeconds.toFixed(2)} s`;
      return [
        id,
        String(trainedIn ?? "-"),
        task,
        kind,
        significant(score),
        significant(reward),
        duration,
        result.split("\n")[0]!,
      ];
    },
  );
  const widths = HEADS.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]!.length)));
  const last = HEADS.length - 1;
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column === last ? cell : column < 4 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join("  ");
  const more = `To see one sample: longrun samples ${run} --show ${samples.at(-1)!.id}`;
  return `${[HEADS, ...rows].map(line).join("\n")}\n\n${more}\n`;
}

/** Facts first, then the texts. */
function shown(sample: Record<string, unknown>): string {
  const { plan, program, solution, terminalOutput, ...facts } = sample;
  const text = (value: unknown) =>
    (Array.isArray(value) ? value.join(", ") : String(value ?? "-")).replaceAll("\n", " ");
  const lines = Object.entries(facts).map(([name, value]) => `${name.padEnd(16)}${text(value)}`.trimEnd());
  const block = (title: string, body: unknown) => (body ? `\n${title}\n${String(body).trimEnd()}\n` : "");
  // Without a program the whole answer says why there is none.
  const written = program ? block("plan", plan) + block("program", program) : block("solution", solution);
  return `${lines.join("\n")}\n${written}${block("terminal output", terminalOutput)}`;
}
