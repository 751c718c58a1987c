/**
 * `spec.notifications.webhook`: what is posted when a run is over, and how. The address may be a secret: no message, log
 * line or status has it, nor anything that the receiver says.
 */
import type { TrainingRun, TrainingRunStatus, Webhook } from "../crds/trainingrun.ts";

/** Field names of a CloudEvent: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md */
export interface FinishedEvent {
  specversion: "1.0";
  /** With `source` it names the event: the same in every attempt. */
  id: string;
  /** Of the run. */
  source: string;
  type: "dev.longrun.trainingrun.succeeded" | "dev.longrun.trainingrun.failed";
  /** When the run ended. */
  time: string;
  datacontenttype: "application/json";
  data: FinishedData;
}

export interface FinishedData {
  name: string;
  namespace?: string;
  /** Where there is no cluster: the run folder. */
  directory?: string;
  task: string;
  phase: "Succeeded" | "Failed";
  /** One sentence for people. */
  message: string;
  iteration?: number;
  iterations: number;
  startTime?: string;
  completionTime: string;
  score?: TrainingRunStatus["score"];
  evaluation?: object;
  executions?: TrainingRunStatus["executions"];
}

/** @param source a path that names the run; `id` that of its end */
export function finishedEvent(source: string, id: string, data: FinishedData): FinishedEvent {
  const type = `dev.longrun.trainingrun.${data.phase === "Succeeded" ? "succeeded" : "failed"}` as const;
  const time = data.completionTime;
  return { specversion: "1.0", id, source, type, time, datacontenttype: "application/json", data };
}

export type Delivery =
  | { delivered: true; message: string }
  /** `again`: another attempt may be taken. */
  | { delivered: false; again: boolean; message: string };

/** Refusals that another attempt may not meet; every other 4xx says that the request itself is wrong. */
const PASSING_REFUSALS = [408, 425, 429];

/** One attempt. Never throws. Redirects are not followed: the event goes where the run says, or nowhere. */
export async function post(
  url: string,
  event: FinishedEvent,
  { timeoutSeconds, signal }: { timeoutSeconds: number; signal?: AbortSignal },
): Promise<Delivery> {
  const target = parseAddress(url);
  if (!target) return { delivered: false, again: false, message: "the webhook's url is no http or https address" };
  const late = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    const response = await fetch(target.url, {
      method: "POST",
      headers: {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "idempotency-key": event.id,
        "user-agent": "longrun",
        ...target.headers,
      },
      body: JSON.stringify(event),
      redirect: "manual",
      signal: signal ? AbortSignal.any([late, signal]) : late,
    });
    await response.body?.cancel().catch(() => {}); // what it says is not read
    const message = `the receiver answered ${response.status}`;
    if (response.ok) return { delivered: true, message };
    const again = response.status >= 500 || PASSING_REFUSALS.includes(response.status);
    return { delivered: false, again, message };
  } catch (error) {
    if (late.aborted) return { delivered: false, again: true, message: `no answer within ${timeoutSeconds} s` };
    if (signal?.aborted) return { delivered: false, again: false, message: "interrupted" };
    // Messages of fetch quote the address; codes do not.
    const { code = "no connection" } = ((error as Error).cause ?? {}) as { code?: string };
    return { delivered: false, again: true, message: `the receiver cannot be reached: ${code}` };
  }
}

/** fetch refuses an address with a user and a password in it, and quotes both. */
function parseAddress(text: string): { url: string; headers: Record<string, string> } | undefined {
  try {
    const url = new URL(text.trim());
    if (!["http:", "https:"].includes(url.protocol)) return undefined;
    const credentials = [url.username, url.password].map(decodeURIComponent).join(":");
    url.username = "";
    url.password = "";
    const authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
    return { url: url.href, headers: credentials === ":" ? {} : { authorization } };
  } catch {
    return undefined; // what is thrown has the address in it
  }
}

/** @returns seconds between attempt `attempts` and the next */
export function pauseSeconds({ backoffSeconds }: Pick<Webhook, "backoffSeconds">, attempts: number): number {
  return backoffSeconds * 2 ** (attempts - 1);
}

export const webhookOf = ({ spec }: Pick<TrainingRun, "spec">): Webhook | undefined => spec.notifications?.webhook;
