/** The condition ActorsScaled and `status.actors`. Pure. */
import type { ActorsStatus } from "../../../../crds/trainingrun.ts";
import { COMPONENT, RUN } from "../../desired/names.ts";
import { isActive, type Observed, type ObservedActor } from "../../observe.ts";
import { containersOf, isUnresolved, podBlocker, withNames } from "../../status/blockers.ts";
import { clip, condition, type Finding, type NewCondition, type Reason } from "../../status/conditions.ts";
import { dropUndefined, timeOf } from "../../status/values.ts";
import { suspendedFinding } from "../../writes/resume-job.ts";
import { lastWords } from "../learner/learner-failures.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import type { ScalePlan } from "./scale.ts";

interface ActorsFacts {
  observed: Observed;
  stage: Stage;
  scale: ScalePlan;
  /** Why this reconcile could not create actors, such as a quota. */
  refused: Finding | undefined;
  nowMs: number;
}

export function actorsCondition({ observed, stage, scale, refused }: ActorsFacts): NewCondition {
  const active = observed.actors.filter(isActive);
  const is = (status: boolean | "Unknown", reason: Reason, message: string) =>
    condition("ActorsScaled", status, { reason, message });
  if (["Ended", "Suspended", "Queued"].includes(stage))
    return is(active.length === 0, active.length === 0 ? "NoWork" : "Scaling", "the run needs no actors now");
  if (refused) return is(false, refused.reason, `actors cannot be created: ${refused.message}`);
  const unresolved = unresolvedActor(observed);
  if (unresolved) return is(false, unresolved.reason, unresolved.message);
  const failing = failingActors(observed, scale);
  if (failing) return is(false, "ActorsFailing", failing);
  const waiting = active.filter(({ state }) => state === "starting");
  const blocker = waitingReason(waiting);
  if (blocker) return is(false, blocker.reason, `actors wait: ${blocker.message}`);
  if (scale.desired === undefined)
    return is("Unknown", "LearnerUnavailable", "the number of actors stays until the learner reports its demand");
  if (scale.desired === 0 && active.length === 0) return is(true, "NoWork", "no execution waits or runs");
  const staying = active.length - scale.drain.length;
  return waiting.length === 0 && staying === scale.desired && scale.create.length === 0
    ? is(true, "AsDesired", "the number of actors matches the work")
    : is(false, "Scaling", "actors start or finish");
}

/** Returns the finding for an actor that could not resolve the learner's name, while no actor is connected. */
function unresolvedActor({ actors }: Observed): Finding | undefined {
  if (actors.some(({ connected }) => connected)) return undefined;
  for (const { name, pod, state } of actors) {
    const ended =
      state === "failed" && pod ? containersOf(pod).find((it) => it.state?.terminated?.exitCode) : undefined;
    const said = lastWords(ended?.state?.terminated?.message);
    if (isUnresolved(said)) return withNames({ reason: "ActorsFailing", message: `actor ${name}: ${said}` });
  }
  return undefined;
}

/** Returns the message of the actor that failed last, after several failures in a row. */
function failingActors({ run, actors }: Observed, { failures }: ScalePlan): string | undefined {
  if (failures < run.spec.restart.maxFailures || failures === 0) return undefined;
  const failed = actors.filter(({ state }) => state === "failed").toSorted((a, b) => b.generation - a.generation)[0];
  const ended =
    failed?.pod && containersOf(failed.pod).find(({ state }) => state?.terminated?.exitCode)?.state?.terminated;
  const said = ended ? `status ${ended.exitCode}: ${lastWords(ended.message)}` : "no pod is left to ask";
  return `actors fail one after the other (${failed?.name}, ${said}); one at a time is tried: see kubectl logs job/${failed?.name} -c supervisor`;
}

export function actorsStatus({ observed, scale, refused, nowMs }: ActorsFacts): ActorsStatus {
  const { run, actors, link } = observed;
  const before = run.status?.actors;
  const active = actors.filter(isActive);
  const waiting = active.filter(({ state }) => state === "starting");
  const running = active.length - waiting.length;
  const desired = scale.desired ?? before?.desired;
  const idle = link?.connected
    ? active.filter((actor) => actor.connected && actor.executions === 0).length
    : before?.idle;
  const reason = refused ?? waitingReason(waiting);
  return dropUndefined({
    desired,
    running,
    idle: Math.min(idle ?? 0, running),
    waiting: waiting.length,
    waitingReason: reason && clip(reason.message),
    replicas: active.length,
    selector: `${COMPONENT}=actor,${RUN}=${run.metadata.name}`,
    lastScaleTime: desired === before?.desired ? before?.lastScaleTime : timeOf(nowMs),
  });
}

/** Returns why the first actor waits; pods of one kind mostly wait for the same reason. */
function waitingReason(waiting: ObservedActor[]): Finding | undefined {
  const suspended = suspendedFinding(waiting.find(({ job }) => job.spec?.suspend)?.job);
  if (suspended) return suspended;
  for (const { pod } of waiting) {
    const blocker = pod && podBlocker(pod, "actors");
    if (blocker) return blocker;
  }
  return undefined;
}
