import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isPolicyName } from "../../crds/policy.ts";
import type { Grader } from "../../crds/trainingrun.ts";
import { type Message, uniforms } from "../engine/index.ts";
import type { CorpusSummary } from "../metrics/summary.ts";
import { instrument } from "../rollout/instrument.ts";
import type { PromptTask } from "../rollout/prompt-task.ts";
import { improveMessages, scratchMessages } from "../rollout/prompts.ts";
import { formatSolution } from "../rollout/solution.ts";
import { readRegistry } from "../tasks/registry.ts";
import { Draw } from "./draw.ts";
import { makeMistake } from "./mistakes.ts";
import { type Design, drawDesign, redrawPart, writeDraft } from "./programs.ts";
import { shapes, type TaskShape } from "./shapes.ts";

export const defaultCorpus = {
  seed: 0,
  texts: 12_000,
  /** Share of texts whose prompt shows a previous solution. */
  improveShare: 0.3,
  /** Share of responses with a mistake in the program. */
  mistakeShare: 0.7,
};
type CorpusOptions = typeof defaultCorpus & {
  /** Names of the tasks; default all that there are texts for. */
  tasks?: readonly string[] | undefined;
};

/** Names of the tasks that the corpus can have. */
export const CORPUS_TASKS: readonly string[] = shapes.map(({ name }) => name);

export interface CorpusText extends ReturnType<typeof respond> {
  task: string;
  kind: "scratch" | "improve";
  messages: Message[];
}

/**
 * Prompts with solutions that a generator wrote, mistakes included. It reads no data, runs no program and knows no
 * score; the probability of each choice was set by hand. An improve prompt's solution is mostly the shown solution with
 * one choice drawn anew, better or worse.
 */
export function makeCorpus(options: CorpusOptions): CorpusText[] {
  const chosen = shapes.filter(({ name }) => options.tasks?.includes(name) ?? true);
  const tasks = new Map(chosen.map((shape) => [shape.name, promptTask(shape)]));
  return Array.from({ length: options.texts }, (_, index) => {
    const draw = new Draw(uniforms(options.seed, "corpus", index));
    const shape = draw.pick(chosen);
    if (draw.chance(options.improveShare)) {
      const design = drawDesign(shape, draw);
      const previous = writeDraft(design, shape, draw);
      const program = previous.lines.join("\n");
      const output = inventOutput(program, shape, draw);
      const messages = improveMessages({ plan: previous.plan, program, output }, "Short", 1024);
      const next = draw.chance(0.8) ? redrawPart(design, shape, draw) : drawDesign(shape, draw);
      return { task: shape.name, kind: "improve", messages, ...respond(next, shape, options, draw) };
    }
    const messages = scratchMessages(tasks.get(shape.name)!, "Short");
    return { task: shape.name, kind: "scratch", messages, ...respond(drawDesign(shape, draw), shape, options, draw) };
  });
}

/** `mistake`: the name of the mistake that was put in, if one was. */
function respond(design: Design, shape: TaskShape, options: CorpusOptions, draw: Draw) {
  const draft = writeDraft(design, shape, draw);
  const wrong = draw.chance(options.mistakeShare) ? makeMistake(draft.lines, shape, draw) : undefined;
  const program = (wrong?.lines ?? draft.lines).join("\n");
  return { response: formatSolution(draft.plan, program), program, mistake: wrong?.name };
}

/** Returns the prompts' facts about a bundled task, from its registry entry and its columns. */
function promptTask(shape: TaskShape): PromptTask {
  const { description, task } = readRegistry()[shape.name];
  const { metric, direction } = task.grader as Grader;
  return {
    name: shape.name,
    description,
    metric: { name: metric, direction },
    columns: shape.columns,
    files: [],
    snippet: [],
    submissionFormat: [],
    packages: [],
  };
}

/** Terminal output as an execution of the program would leave it, markers and all, with losses that mean nothing. */
function inventOutput(program: string, shape: TaskShape, draw: Draw): string {
  const losses = new Map<string, string>();
  const loss = (name: string) => {
    if (!losses.has(name)) losses.set(name, String(draw.logUniform(...shape.lossRange)));
    return losses.get(name)!;
  };
  const printed = instrument(program, "Syntax").program.matchAll(/^print\("(?:@@NONCE@@:)?([^"]+)"(?:, (\w+))?[,)]/gm);
  return [...printed]
    .map(([, text, name]) => (name === undefined || name === "flush" ? text : `${text} ${loss(name)}`))
    .join("\n");
}

/** First eight bytes of the SHA-256 of each distinct program, sorted, one after the other. */
export function programHashes(programs: Iterable<string>): Buffer {
  const distinct = new Set([...programs].map((program) => programHash(program).toString("hex")));
  return Buffer.from([...distinct].sort().join(""), "hex");
}

/** Programs are compared without white space at line ends and without blank lines at the end. */
export function programHash(program: string): Buffer {
  const text = program.replace(/[ \t]+$/gm, "").trimEnd();
  return createHash("sha256").update(text).digest().subarray(0, 8);
}

/** Whether a program is in the corpus, verbatim; `hashes` as `programHashes` gives them. */
export function inCorpus(program: string, hashes: Buffer): boolean {
  const wanted = programHash(program);
  for (let at = hashes.indexOf(wanted); at >= 0; at = hashes.indexOf(wanted, at + 1)) if (at % 8 === 0) return true;
  return false;
}

/**
 * Returns a model folder's facts about its pretraining corpus; undefined if `longrun pretrain` did not make the folder.
 * @param task the best program for this task is returned too; absent: none
 */
export function readCorpus(folder: string, task?: string) {
  const path = join(folder, "corpus.hashes");
  if (!existsSync(path)) return undefined;
  const hashes = readFileSync(path);
  // Measured separately, by executing the corpus (test/bench/corpus.ts).
  const measured = join(folder, "corpus-best.json");
  const best =
    task !== undefined && existsSync(measured) ? JSON.parse(readFileSync(measured, "utf8"))[task] : undefined;
  const known: Partial<CorpusSummary> = best && { bestScore: best.score, bestProgram: best.family };
  const summary: CorpusSummary = { programs: hashes.length / 8, ...known };
  const made = join(folder, "corpus.json");
  const tasks: string[] = existsSync(made) ? (JSON.parse(readFileSync(made, "utf8")).tasks ?? []) : [];
  return { hashes, summary, tasks };
}

/**
 * Returns one line that warns of a task that a pretrained policy has seen no program for; undefined if it has, or if its tasks are not
 * known.
 *
 * @param tasks of the policy's corpus @param policy `model.policy`
 */
export function unknownTask(tasks: readonly string[], policy: string, task: string): string | undefined {
  if (tasks.length === 0 || tasks.includes(task)) return undefined;
  const which = isPolicyName(policy) ? `bundled policy ${policy}` : `policy ${policy}`;
  const known = new Intl.ListFormat("en-GB").format(tasks);
  return `the ${which} knows ${known}; ${task} is none of them, so few of its programs may be valid`;
}
