import { describeSettings, evaluationTable } from "../evaluation/rows.ts";
import { type Html, heads, html, row } from "./html.ts";
import type { BestProgram, ReportedEvaluation } from "./run-folder.ts";

/** How good the policies are: the numbers of an evaluation, and the best programs of each. */
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
