/** The report's section on how good the policies are: the numbers of an evaluation, and the best programs of each. */
import { join } from "node:path";
import { describeSettings, evaluationTable, WHENS } from "../evaluation/rows.ts";
import type { Evaluation, When } from "../metrics/summary.ts";
import { readSummary } from "../metrics/summary.ts";
import { type Html, heads, html, row } from "./html.ts";

export interface BestProgram {
  program: string;
  output: string;
  /** `score.json`: score, iteration, durationSeconds, … */
  facts: Record<string, unknown>;
}

/** An evaluation and its best programs, as the folder holds them. */
export interface ReportedEvaluation {
  evaluation: Evaluation;
  /** Whether it goes on, or was stopped. */
  unfinished: boolean;
  programs: { title: string; best: BestProgram }[];
}

/**
 * What `longrun evaluate` found out (in `evaluation/` of a run folder), else the run's own evaluation phase.
 * @param readBest reads a folder with a program in it
 */
export async function readEvaluation(
  directory: string,
  readBest: (directory: string) => Promise<BestProgram | undefined>,
): Promise<ReportedEvaluation | undefined> {
  for (const place of [join(directory, "evaluation"), directory]) {
    const { evaluation, state } = (await readSummary(place)) ?? {};
    if (!evaluation?.settings) continue;
    const programs: ReportedEvaluation["programs"] = [];
    for (const when of WHENS)
      for (const kind of ["scratch", "improve"] as const) {
        const best = evaluation[when] && (await readBest(join(place, "programs", `${when}-${kind}`)));
        if (best) programs.push({ title: titleOf(when, kind), best });
      }
    return { evaluation, unfinished: place !== directory && state !== "succeeded", programs };
  }
  return undefined;
}

export function evaluationSection(
  { evaluation, unfinished, programs }: ReportedEvaluation,
  program: (best: BestProgram) => Html,
): Html {
  const table = evaluationTable(evaluation);
  const body = table.groups.map(
    ({ title, rows }) =>
      html`${title && html`<tr class="group"><th scope="rowgroup" colspan="${table.heads.length + 1}">${title}</th></tr>`}${rows.map(
        ({ label, cells }) => row(label, cells),
      )}`,
  );
  return html`<h2>Evaluation</h2>
<p>${describeSettings(evaluation)}${unfinished && " It is not finished."}</p>
<div class="scroll"><table class="comparison evaluation"><thead><tr><th></th>${heads(table.heads)}</tr></thead><tbody>${body}</tbody></table></div>
${programs.map(({ title, best }) => html`<details><summary>Best program ${title}</summary>${program(best)}</details>`)}`;
}

function titleOf(when: When, kind: "scratch" | "improve"): string {
  const policy = { before: "before training", after: "after training", model: "of the model" }[when];
  return `${policy}, ${kind === "scratch" ? "from scratch" : "improving another"}`;
}
