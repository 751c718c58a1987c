/** `/report` of the learner: report.html below a line about the current state, reloaded during the run. */
import { join } from "node:path";
import type { StatusMessage } from "../../proto/service.ts";
import { readIfThere } from "../metrics/files.ts";
import type { Page } from "../metrics/http.ts";
import { isFinal, Phase } from "../server/status.ts";
import { CONTENT_SECURITY_POLICY, type Html, html, trusted } from "./html.ts";

/** Default interval of reloads; `?refresh=SECONDS` of the address replaces it, 0 means never. */
const REFRESH_SECONDS = 10;
const LONGEST_REFRESH_SECONDS = 3600;

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  // Unlike the policy in the page, a header can sandbox the page and keep it out of others' frames.
  "content-security-policy": `${CONTENT_SECURITY_POLICY}; frame-ancestors 'none'; sandbox`,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

const DOING: Record<number, string> = {
  [Phase.STARTING]: "starts",
  [Phase.GENERATING]: "the model writes programs",
  [Phase.EXECUTING]: "programs run",
  [Phase.EVALUATING]: "the batch is prepared for learning",
  [Phase.TRAINING]: "the model learns from the batch",
  [Phase.CHECKPOINTING]: "a checkpoint is written",
  [Phase.FINAL_EVALUATION]: "the model is evaluated",
  [Phase.WARMING_UP]: "the model learns from given answers",
  [Phase.SUCCEEDED]: "succeeded",
  [Phase.FAILED_RUN]: "failed",
  [Phase.STOPPED]: "stopped",
};

/** @param status the learner's status for the controller */
export async function reportPage(
  runDirectory: string,
  status: StatusMessage,
  query: URLSearchParams,
  now = new Date(),
): Promise<Page> {
  const refreshSeconds = isFinal(status) ? 0 : refreshOf(query);
  const written = (await readIfThere(join(runDirectory, "report.html"))) ?? NOT_YET;
  const strip = liveLine(status, refreshSeconds, now);
  // The first `<body>` is the page's own: text in the page is escaped.
  const body = written.replace("<body>", () => `<body>\n${strip.html}`);
  return {
    // Sent as a header, because browsers ignore a refresh in the HTML of a sandboxed page.
    headers: { ...HEADERS, ...(refreshSeconds > 0 && { refresh: String(refreshSeconds) }) },
    body,
  };
}

function refreshOf(query: URLSearchParams): number {
  const asked = query.get("refresh");
  if (asked === null || !/^\d+$/.test(asked)) return REFRESH_SECONDS;
  return Math.min(Number(asked), LONGEST_REFRESH_SECONDS);
}

function liveLine(status: StatusMessage, refreshSeconds: number, now: Date): Html {
  const { iteration, iterations, phase, phaseDone, phaseTotal, executions, actors, message } = status;
  const facts = [
    iterations && `iteration ${Math.min(iteration ?? 0, iterations)} of ${iterations}`,
    `${DOING[phase ?? Phase.STARTING]}${phaseTotal ? ` (${phaseDone ?? 0} of ${phaseTotal})` : ""}`,
    executions && `${executions.running ?? 0} executions run, ${executions.queued ?? 0} wait`,
    actors && `${actors.filter(({ connected }) => connected).length} actors`,
    message,
  ].filter(Boolean);
  const reload =
    refreshSeconds > 0
      ? html` · loaded every ${refreshSeconds} s (<a href="?refresh=0">stop</a>)`
      : html` · <a href="?">load every ${REFRESH_SECONDS} s</a>`;
  const time = now.toISOString().slice(11, 19);
  return html`<div style="${trusted(LINE)}">${time} UTC · ${facts.join(" · ")}${!isFinal(status) && reload}</div>`;
}

const LINE = "margin:0;padding:6px 28px;font:13px/1.5 system-ui,sans-serif;background:#8882";

const NOT_YET = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${CONTENT_SECURITY_POLICY}"><title>longrun report</title></head>
<body>
<p style="padding:0 16px;font:15px system-ui,sans-serif">The report appears when the first iteration has ended.</p>
</body>
</html>
`.html;
