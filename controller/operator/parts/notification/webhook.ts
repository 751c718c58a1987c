/**
 * `spec.notifications.webhook`: the message at the end of a run, and its delivery. The address may be a secret, so no message, log line or
 * status has the address or the receiver's answer.
 */
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import type { TrainingRun, TrainingRunStatus, Webhook } from "../../../../crds/trainingrun.ts";
import { allowanceOf, type HostPattern, InsideError, internetLookup } from "./webhook-hosts.ts";

/** Field names of a CloudEvent: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md */
export interface FinishedEvent {
  specversion: "1.0";
  /** With `source` it names the event: the same in every attempt. */
  id: string;
  /** Path that names the run. */
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
  /** The run folder, for a run without a cluster. */
  directory?: string;
  /** Names of the tasks, separated by commas. */
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
  /** Status of each task, if the run has several. */
  tasks?: TrainingRunStatus["tasks"];
  executions?: TrainingRunStatus["executions"];
}

/** @param source path that names the run @param id identifies this end of the run */
export function finishedEvent(source: string, id: string, data: FinishedData): FinishedEvent {
  const type = `dev.longrun.trainingrun.${data.phase === "Succeeded" ? "succeeded" : "failed"}` as const;
  const time = data.completionTime;
  return { specversion: "1.0", id, source, type, time, datacontenttype: "application/json", data };
}

export type Delivery =
  | { delivered: true; message: string }
  /** `again`: another attempt may succeed. `remedy`: why the controller does not post at all, and the remedy. */
  | { delivered: false; again: boolean; message: string; remedy?: string };

interface PostOptions {
  timeoutSeconds: number;
  signal?: AbortSignal;
  /** Allowed hosts; undefined: any. */
  hosts?: readonly HostPattern[] | undefined;
}

/** Statuses 4xx after which another attempt may succeed; with any other 4xx the request itself is wrong. */
const PASSING_REFUSALS = [408, 425, 429];

const SET_HOSTS =
  "the administrator of the controller lists the allowed hosts: --webhook-allow, notifications.allowedHosts of the chart";

/** Makes one attempt. Never throws. Does not follow redirects, so that the event reaches only the run's own address. */
export async function post(url: string, event: FinishedEvent, options: PostOptions): Promise<Delivery> {
  const { timeoutSeconds, signal, hosts } = options;
  const target = parseAddress(url);
  if (!target) return refused("the webhook's url is no http or https address");
  const allowance = hosts === undefined ? "any" : allowanceOf(target.host, hosts);
  if (allowance === "none") return refused(`the webhook's host is not on the controller's list; ${SET_HOSTS}`);
  const late = AbortSignal.timeout(timeoutSeconds * 1000);
  try {
    const status = await send(target, event, {
      ...(allowance === "internet" && { lookup: internetLookup(target.host) }),
      signal: signal ? AbortSignal.any([late, signal]) : late,
    });
    const message = `the receiver answered ${status}`;
    if (status >= 200 && status < 300) return { delivered: true, message };
    const again = status >= 500 || PASSING_REFUSALS.includes(status);
    return { delivered: false, again, message };
  } catch (error) {
    if (late.aborted) return { delivered: false, again: true, message: `no answer within ${timeoutSeconds} s` };
    if (signal?.aborted) return { delivered: false, again: false, message: "interrupted" };
    if (error instanceof InsideError)
      return refused(
        `the webhook's host has an address inside the cluster and is not listed by its name; ${SET_HOSTS}`,
      );
    // Messages quote the address; codes do not.
    const { code = "no connection" } = error as { code?: string };
    return { delivered: false, again: true, message: `the receiver cannot be reached: ${code}` };
  }
}

function refused(remedy: string): Delivery {
  return { delivered: false, again: false, message: remedy, remedy };
}

/** @returns the HTTP status; the rest of the answer is not read */
function send(
  { url, headers }: Address,
  event: FinishedEvent,
  options: Pick<RequestOptions, "lookup" | "signal">,
): Promise<number> {
  const body = JSON.stringify(event);
  return new Promise((resolve, reject) => {
    const request = (url.startsWith("https:") ? httpsRequest : httpRequest)(url, {
      ...options,
      method: "POST",
      headers: {
        "content-type": "application/cloudevents+json; charset=utf-8",
        "content-length": Buffer.byteLength(body),
        "idempotency-key": event.id,
        "user-agent": "longrun",
        ...headers,
      },
    });
    request.on("error", reject);
    request.on("response", (response) => {
      response.on("error", () => {});
      resolve(response.statusCode!);
      response.destroy();
    });
    request.end(body);
  });
}

interface Address {
  url: string;
  /** An IPv6 address is without brackets. */
  host: string;
  headers: Record<string, string>;
}

/** Moves user and password from the address to a header, so that no error quotes them. */
function parseAddress(text: string): Address | undefined {
  try {
    const url = new URL(text.trim());
    if (!["http:", "https:"].includes(url.protocol)) return undefined;
    const credentials = [url.username, url.password].map(decodeURIComponent).join(":");
    url.username = "";
    url.password = "";
    const authorization = `Basic ${Buffer.from(credentials).toString("base64")}`;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    return { url: url.href, host, headers: credentials === ":" ? {} : { authorization } };
  } catch {
    return undefined; // the error's message contains the address
  }
}

/** @returns the seconds between attempt number `attempts` and the next */
export function pauseSeconds({ backoffSeconds }: Pick<Webhook, "backoffSeconds">, attempts: number): number {
  return backoffSeconds * 2 ** (attempts - 1);
}

export const webhookOf = ({ spec }: Pick<TrainingRun, "spec">): Webhook | undefined => spec.notifications?.webhook;
