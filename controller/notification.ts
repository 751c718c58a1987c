/**
 * The webhook of a run on Kubernetes. `status.notification` says what became of it and survives this process; an attempt is
 * a call in the background that no reconcile waits for. Whoever takes over between an answer and its being written down
 * posts once more, with the same id.
 */
import type { NotificationStatus } from "../crds/trainingrun.ts";
import { clip, findCondition } from "./conditions.ts";
import { call, type Pass, tell } from "./context.ts";
import { type Run, runId } from "./desired/names.ts";
import { SECRET, type Secret } from "./kube/resources.ts";
import { hasEnded } from "./lifecycle.ts";
import { type Delivery, type FinishedEvent, finishedEvent, pauseSeconds, post, webhookOf } from "./webhook.ts";

/** Whether something is still to be told: until then a finished run is not deleted by its ttl. */
export function isUntold({ observed }: Pass): boolean {
  const { run } = observed;
  const { state = "Pending" } = run.status?.notification ?? {};
  return webhookOf(run) !== undefined && hasEnded(observed) && state === "Pending";
}

/** Posts, if it is time to. @returns the seconds until the next attempt */
export function notify(pass: Pass): number | undefined {
  const { observed, memory, nowMs } = pass;
  // A run that goes on after a failure is to be told of again.
  if (!hasEnded(observed)) memory.notification = undefined;
  if (!isUntold(pass)) return undefined;
  const { run } = observed;
  const webhook = webhookOf(run)!;
  const known = memory.notification ?? run.status?.notification;
  const attempts = known?.attempts ?? 0;
  // What was found out is written down before anything else is tried.
  if (
    known?.state === "Delivered" ||
    known?.state === "GivenUp" ||
    attempts !== (run.status?.notification?.attempts ?? 0)
  )
    return undefined;
  const dueMs = attempts === 0 ? nowMs : Date.parse(known!.lastAttemptTime!) + 1000 * pauseSeconds(webhook, attempts);
  if (nowMs < dueMs) return (dueMs - nowMs) / 1000;
  const completionTime = run.status?.completionTime;
  call(pass, "webhook", async () => {
    const answer = await attempt(pass, webhook.timeoutSeconds);
    if (memory.run.status?.completionTime !== completionTime) return; // the run goes on: that end is none any more
    const next = afterAttempt(answer, attempts + 1, webhook.maxAttempts, pass.context.now());
    memory.notification = next;
    if (next.state === "Delivered") tell(pass, "Normal", "WebhookDelivered", next.message!, "Notify");
    if (next.state === "GivenUp") tell(pass, "Warning", "WebhookGivenUp", next.message!, "Notify");
  });
  return undefined;
}

function afterAttempt(answer: Delivery, attempts: number, maxAttempts: number, nowMs: number): NotificationStatus {
  const lastAttemptTime = new Date(nowMs).toISOString().replace(/\.\d+Z/, "Z");
  const done = { attempts, lastAttemptTime };
  if (answer.delivered) return { ...done, state: "Delivered", message: `the webhook was told: ${answer.message}` };
  const over = !answer.again || attempts >= maxAttempts;
  const message = over
    ? `the webhook was not told, ${attempts} of ${maxAttempts} attempts: ${answer.message}; check spec.notifications.webhook and the controller's way there`
    : `attempt ${attempts} of ${maxAttempts}: ${answer.message}`;
  return { ...done, state: over ? "GivenUp" : "Pending", message: clip(message) };
}

async function attempt({ observed: { run }, context }: Pass, timeoutSeconds: number): Promise<Delivery> {
  const { url, urlFrom } = webhookOf(run)!;
  if (url !== undefined) return post(url, eventOf(run), { timeoutSeconds });
  const { name, key } = urlFrom!.secretKeyRef;
  const failed = (message: string): Delivery => ({ delivered: false, again: true, message });
  try {
    const secret = await context.client.get<Secret>(SECRET, { namespace: run.metadata.namespace, name });
    if (!secret) return failed(`there is no Secret ${name}`);
    const value = secret.data?.[key];
    if (value === undefined) return failed(`Secret ${name} has no key ${key}`);
    return await post(Buffer.from(value, "base64").toString("utf8"), eventOf(run), { timeoutSeconds });
  } catch {
    return failed(`Secret ${name} cannot be read`);
  }
}

/** Of a run that has ended. */
export function eventOf(run: Run): FinishedEvent {
  const { metadata, spec, status = {} } = run;
  const { iteration, startTime, completionTime, score, evaluation, executions } = status;
  const succeeded = findCondition(status.conditions, "Succeeded");
  const phase = succeeded?.status === "True" ? "Succeeded" : "Failed";
  // A run that was resumed may fail again, and that is another event.
  const id = `${metadata.uid}-${phase}${phase === "Failed" ? `-${completionTime}` : ""}`;
  return finishedEvent(`/namespaces/${metadata.namespace}/trainingruns/${metadata.name}`, id, {
    ...{ name: metadata.name, namespace: metadata.namespace, task: spec.tasks[0]!.name, phase },
    message: succeeded?.message ?? `${runId(run)} is over`,
    ...{ iteration, iterations: spec.stopping.iterations, startTime, completionTime: completionTime! },
    ...{ score, evaluation, executions },
  } as FinishedEvent["data"]);
}
