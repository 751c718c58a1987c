/**
 * Reconciles one TrainingRun. All parts observe; then each reconciles, in the order of parts/index.ts; then the status is written from
 * their reports. Only objects that differ from the desired ones are written, with their uid and version as a precondition.
 */
import { claim } from "./claims/claim.ts";
import { contendedSeconds } from "./claims/claims.ts";
import { type Context, type Look, lookAt, lookOf, recordEvent, settle } from "./context.ts";
import { TRAINING_RUN } from "./kube/resources.ts";
import type { ReconcileResult } from "./kube/types.ts";
import { type RunMemory, sliceOf } from "./memory.ts";
import type { Done, Sum } from "./part.ts";
import { PARTS } from "./parts/index.ts";
import {
  expiryMs,
  FINALIZER,
  isNamespaceDeleted,
  isOverdue,
  NAMESPACE_SECONDS,
  releaseRun,
  volumeEvent,
} from "./parts/lifecycle/deletion.ts";
import { volumeName } from "./parts/volume/part.ts";
import { merged, runtimeOf } from "./runtimes/effective.ts";
import { eventOf } from "./status/conditions.ts";
import { measure } from "./status/measure.ts";
import { reconcileStatus, STATUS } from "./status/reconcile-status.ts";
import { desiredStatus } from "./status/status.ts";
import { stallSeconds } from "./status/summary.ts";
import { findWarning, WARNINGS } from "./status/warnings.ts";
import { Turn } from "./turn.ts";
import { CONFIRM_SECONDS } from "./writes/expectations.ts";

/** The value of `spec.managedBy` that selects this controller; an absent field selects it too. */
const MANAGED_BY_US = "longrun.dev/controller";

export async function reconcile(key: string, context: Context, parts = PARTS): Promise<ReconcileResult> {
  const run = context.cache.trainingRun(key);
  if (!run) return forget(key, context);
  if ((run.spec.managedBy ?? MANAGED_BY_US) !== MANAGED_BY_US) return {};
  await context.expectations.confirm(key);
  if (context.expectations.unseen(key).length > 0) return { requeueAfterSeconds: CONFIRM_SECONDS };

  const look = lookAt(key, run, context);
  const claimed = await claim(look);
  if (claimed) return claimed;
  const turns = parts.map((part) => new Turn(part, look));
  for (const turn of turns) turn.observe();
  if (run.metadata.deletionTimestamp) {
    const isFree = turns.filter((turn) => turn.leave()).length === 0;
    if (isFree || (await isNamespaceDeleted(look))) await releaseRun(look);
    return soonest(turns, isFree ? undefined : NAMESPACE_SECONDS);
  }
  if (isOverdue(look) && !turns.some((turn) => turn.owes())) return expire(look, turns);

  const sum: Sum = { failed: false, blocked: undefined, other: undefined };
  const done = sum as Done & Sum;
  let failure: unknown;
  for (const turn of turns) {
    // All children are tried, even after one has failed.
    if (failure !== undefined && !turn.part.isChild) throw failure;
    const { stop, error } = await turn.reconcile(done);
    if (stop) return {};
    failure ??= error;
  }
  if (failure !== undefined) throw failure;
  sum.other ??= look.writes.fields.dropped();

  const warnings = lookOf(look, WARNINGS);
  const stuck = turns.map((turn) => turn.stuck());
  const { index, warning, ...found } = await findWarning(warnings, stuck);
  settle(warnings, found);
  const reports = turns.map((turn, at) => turn.report(done, at === index ? warning : undefined));
  const desired = desiredStatus({
    observed: look.observed,
    lifecycle: done.lifecycle,
    scale: done.scale,
    refused: done,
    nowMs: look.nowMs,
    conditions: reports.flatMap(({ conditions = [] }) => conditions),
    pieces: Object.assign({}, ...reports.map(({ status }) => status)),
  });
  const { status, againSeconds } = await reconcileStatus(lookOf(look, STATUS), desired);
  measure(look, status, done, reports);
  const expirySeconds = isOverdue(look) ? undefined : (expiryMs(look) - look.nowMs) / 1000;
  const claimSeconds = contendedSeconds(look.stored, look.nowMs);
  const stall = stallSeconds(status, look.nowMs);
  return soonest(turns, found.againSeconds, againSeconds, expirySeconds, stall, claimSeconds);
}

function soonest(turns: Turn[], ...more: (number | undefined)[]): ReconcileResult {
  const seconds = Math.min(...turns.flatMap(({ again }) => again), ...more.filter((it) => it !== undefined));
  return Number.isFinite(seconds) ? { requeueAfterSeconds: Math.max(0.1, seconds) } : {};
}

/** Forgets a run that was deleted with its children. */
function forget(key: string, context: Context): ReconcileResult {
  context.links.drop(key);
  context.expectations.forget(key);
  const memory = context.memories.forget(key);
  if (!memory) return {};
  const { run } = memory;
  const { volume } = sliceOf(memory, volumeName, context.now());
  const { reason, note } = volumeEvent(merged(run, runtimeOf(run, context, true)?.spec), volume);
  const event = { ...eventOf(reason), note };
  if (!run.metadata.finalizers?.includes(FINALIZER)) context.events.record(run, event); // otherwise it was recorded already
  const { namespace, name } = run.metadata;
  context.metrics.forget({ namespace, run: name });
  return {};
}

async function expire(look: Look<RunMemory>, turns: Turn[]): Promise<ReconcileResult> {
  const { run } = look.observed;
  for (const turn of turns) turn.expire();
  const note = `deleted ${run.spec.ttlSecondsAfterFinished} s after its end (spec.ttlSecondsAfterFinished)`;
  recordEvent(look, "Expired", note);
  await look.writes.remove(TRAINING_RUN, run);
  return {};
}
