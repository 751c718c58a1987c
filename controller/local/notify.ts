/** Posts the webhook of a run on this machine when the run has succeeded or failed, before `longrun run` ends. */
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TrainingRun } from "../../crds/trainingrun.ts";
import {
  type FinishedData,
  finishedEvent,
  pauseSeconds,
  post,
  webhookOf,
} from "../operator/parts/notification/webhook.ts";
import { readMetrics } from "./terminal/metrics-lines.ts";
import { readSummarySince } from "./terminal/summary.ts";
import type { IterationLine } from "./terminal/terminal.ts";

type NamedRun = Pick<TrainingRun, "spec"> & { metadata: { name: string } };

/** A failed webhook prints a line and does not change the run's result. */
interface NotifyOptions {
  /** Unix milliseconds; an end that was recorded earlier has been posted already. */
  since: number;
  signal: AbortSignal;
  say: (line: string) => void;
}

export async function notifyWebhook(run: NamedRun, directory: string, options: NotifyOptions): Promise<void> {
  const { since, signal, say } = options;
  const webhook = webhookOf(run);
  const end = webhook && endOf(run, directory, since);
  if (!end || webhook.url === undefined) return;
  const { id, data } = end;
  const event = finishedEvent(`/runs/${basename(directory)}`, id, data);
  const { maxAttempts, timeoutSeconds } = webhook;
  for (let attempts = 1; ; attempts++) {
    const answer = await post(webhook.url, event, { timeoutSeconds, signal });
    if (answer.delivered) return say(`The webhook was delivered: ${answer.message}`);
    if (!answer.again || attempts >= maxAttempts || signal.aborted)
      return say(`The webhook was not delivered, ${attempts} of ${maxAttempts} attempts: ${answer.message}`);
    const seconds = pauseSeconds(webhook, attempts);
    say(`The webhook: ${answer.message}; once more in ${seconds} s`);
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
  }
}

function endOf(run: NamedRun, directory: string, since: number): { id: string; data: FinishedData } | undefined {
  const { state, message = "", startedAt = "", updatedAt = "" } = readSummarySince(directory, since) ?? {};
  if (state !== "succeeded" && state !== "failed") return undefined;
  const phase = state === "succeeded" ? "Succeeded" : "Failed";
  const { metadata, spec } = run;
  const line = readMetrics(directory).at(-1)?.line as (IterationLine & { bestScoreSoFar?: number | null }) | undefined;
  const { bestScoreSoFar, meanScore, validFraction } = line ?? {};
  return {
    id: `${metadata.name}-${startedAt}-${phase}`,
    data: {
      name: metadata.name,
      directory,
      task: spec.tasks.map((task) => task.name).join(", "),
      phase,
      message,
      iteration: line?.iteration ?? 0,
      iterations: spec.stopping.iterations,
      startTime: startedAt,
      completionTime: updatedAt,
      ...(line && { score: { best: bestScoreSoFar ?? undefined, mean: meanScore ?? undefined, validFraction } }),
    } as FinishedData,
  };
}
