/**
 * The webhook of a run on Kubernetes. `status.notification` stores its state and survives this process. An attempt is a call in the
 * background, and no reconcile waits for it. A controller that takes over before an answer is stored posts once more, with the same id.
 */
import type { NotificationStatus } from "../../../../crds/trainingrun.ts";
import { type Look, recordEvent } from "../../context.ts";
import { type Run, runId } from "../../desired/names.ts";
import { SECRET, type Secret } from "../../kube/resources.ts";
import { clip, findCondition } from "../../status/conditions.ts";
import { timeOf } from "../../status/values.ts";
import type { StepResult } from "../../steps.ts";
import { hasEnded } from "../lifecycle/lifecycle.ts";
import { type Delivery, type FinishedEvent, finishedEvent, pauseSeconds, post, webhookOf } from "./webhook.ts";

export interface NotificationMemory {
  /** Delivery state, which may be newer than the status. */
  notification: NotificationStatus | undefined;
}

/** Returns whether the webhook is not delivered yet; until it is, a finished run is not deleted by its ttl. */
export function isUntold({ observed }: Look): boolean {
  const { run } = observed;
  const { state = "Pending" } = run.status?.notification ?? {};
  return webhookOf(run) !== undefined && hasEnded(observed) && state === "Pending";
}

/** Posts the webhook if an attempt is due. `againSeconds` is the time until the next attempt. */
export function notify(look: Look<NotificationMemory>): StepResult<NotificationMemory> {
  const { observed, memory, nowMs } = look;
  // A run that continues after a failure gets another webhook at its next end.
  if (!hasEnded(observed)) return { remember: { notification: undefined } };
  if (!isUntold(look)) return {};
  const { run } = observed;
  const webhook = webhookOf(run)!;
  const known = memory.notification ?? run.status?.notification;
  const attempts = known?.attempts ?? 0;
  // The status must store the last attempt before the next one begins.
  if (
    known?.state === "Delivered" ||
    known?.state === "GivenUp" ||
    attempts !== (run.status?.notification?.attempts ?? 0)
  )
    return {};
  const dueMs = attempts === 0 ? nowMs : Date.parse(known!.lastAttemptTime!) + 1000 * pauseSeconds(webhook, attempts);
  if (nowMs < dueMs) return { againSeconds: (dueMs - nowMs) / 1000 };
  const completionTime = run.status?.completionTime;
  const work = async (): Promise<Partial<NotificationMemory>> => {
    const answer = await deliver(look, webhook.timeoutSeconds);
    // The receiver's answer goes to the controller's log alone: a tenant could use it to explore the cluster.
    look.context.log.info({ run: look.key, answer: answer.message }, "the webhook was posted");
    const now = look.context.cache.trainingRun(look.key);
    if (now?.status?.completionTime !== completionTime) return {}; // the run was resumed, so that end no longer counts
    const next = afterAttempt(answer, attempts + 1, webhook.maxAttempts, look.context.now());
    if (next.state === "Delivered") recordEvent(look, "WebhookDelivered", next.message!);
    if (next.state === "GivenUp") recordEvent(look, "WebhookGivenUp", next.message!);
    return { notification: next };
  };
  return { call: { kind: "webhook", work } };
}

function afterAttempt(answer: Delivery, attempts: number, maxAttempts: number, nowMs: number): NotificationStatus {
  const lastAttemptTime = timeOf(nowMs);
  const done = { attempts, lastAttemptTime };
  if (answer.delivered) return { ...done, state: "Delivered", message: "the webhook was delivered" };
  const over = !answer.again || attempts >= maxAttempts;
  const why =
    answer.remedy ?? "check spec.notifications.webhook, and the controller's log, which has the receiver's answer";
  const message = over
    ? `the webhook was not delivered, ${attempts} of ${maxAttempts} attempts: ${why}`
    : `the webhook was not delivered, attempt ${attempts} of ${maxAttempts}: ${answer.remedy ?? "it is tried again"}`;
  return { ...done, state: over ? "GivenUp" : "Pending", message: clip(message) };
}

async function deliver({ observed: { run }, context }: Look, timeoutSeconds: number): Promise<Delivery> {
  const { url, urlFrom } = webhookOf(run)!;
  const options = { timeoutSeconds, hosts: context.settings.webhookHosts ?? [] };
  if (url !== undefined) return post(url, eventOf(run), options);
  const { name, key } = urlFrom!.secretKeyRef;
  const failed = (message: string): Delivery => ({ delivered: false, again: true, message, remedy: message });
  try {
    const secret = await context.client.get<Secret>(SECRET, { namespace: run.metadata.namespace, name });
    if (!secret) return failed(`there is no Secret ${name}`);
    const value = secret.data?.[key];
    if (value === undefined) return failed(`Secret ${name} has no key ${key}`);
    return await post(Buffer.from(value, "base64").toString("utf8"), eventOf(run), options);
  } catch {
    return failed(`Secret ${name} cannot be read`);
  }
}

/** Returns the event for a run that has ended. */
export function eventOf(run: Run): FinishedEvent {
  const { metadata, spec, status = {} } = run;
  const { iteration, startTime, completionTime, score, evaluation, executions, tasks } = status;
  const succeeded = findCondition(status.conditions, "Succeeded");
  const phase = succeeded?.status === "True" ? "Succeeded" : "Failed";
  // A run that was resumed may fail again, and that is another event.
  const id = `${metadata.uid}-${phase}${phase === "Failed" ? `-${completionTime}` : ""}`;
  return finishedEvent(`/namespaces/${metadata.namespace}/trainingruns/${metadata.name}`, id, {
    name: metadata.name,
    namespace: metadata.namespace,
    task: spec.tasks.map((task) => task.name).join(", "),
    phase,
    message: succeeded?.message ?? `${runId(run)} is over`,
    iteration,
    iterations: spec.stopping.iterations,
    startTime,
    completionTime: completionTime!,
    score,
    evaluation,
    executions,
    ...(spec.tasks.length > 1 && { tasks }),
  } as FinishedEvent["data"]);
}
