/** The actors: how many there are and which, their certificates, and what the learner must know of their ends. */
import type { RuntimeSpec } from "../../../../crds/runtime.ts";
import { type Look, settle } from "../../context.ts";
import type { Run } from "../../desired/names.ts";
import { JOB, POD, SECRET } from "../../kube/resources.ts";
import { createdMs } from "../../observe.ts";
import type { Part } from "../../part.ts";
import { isKeptActor } from "../../pin.ts";
import { merged } from "../../runtimes/effective.ts";
import { eventBlocker, NO_POD_SECONDS } from "../../status/blockers.ts";
import { stuckPod } from "../../status/warnings.ts";
import { tryStep } from "../../steps.ts";
import { reconcileActorCertificates } from "../certificates/actor-certificates.ts";
import {
  type ActorsMemory,
  drainActors,
  markActors,
  replaceActors,
  reportDisruptions,
  reportTerminations,
  resumeActors,
} from "./actor-jobs.ts";
import { SILENT_ACTOR_SECONDS, silentSince } from "./actor-state.ts";
import { Stabiliser } from "./autoscale.ts";
import { actorsCondition, actorsStatus } from "./conditions.ts";
import { planActors } from "./scale.ts";

export const actors: Part<ActorsMemory, unknown, "lifecycle" | "derived" | "certified", "scale"> = {
  name: "actors",
  needs: ["lifecycle", "derived", "certified"],
  gives: ["scale"],
  kinds: () => [JOB, POD, SECRET],
  initial: (run, nowMs) => ({
    ...stabiliserOf(run, nowMs),
    certificates: new Map(),
    toldToDrain: new Map(),
    reported: new Set(),
    toldDisrupted: new Map(),
    silentSinceMs: new Map(),
    refusal: undefined,
  }),
  observe(look) {
    const { stored, memory, nowMs } = look;
    const isChanged = memory.scaleDownSeconds !== stored.spec.actors.scaleDownSeconds;
    const silentSinceMs = noteSilence(look);
    return { facts: undefined, remember: { silentSinceMs, ...(isChanged && stabiliserOf(stored, nowMs)) } };
  },
  async reconcile(look, _, { lifecycle: { stage }, derived, certified }) {
    const { observed, memory, nowMs } = look;
    const { actorHash: hash, inputs } = derived;
    const keeps = (actor: (typeof observed.actors)[number]) => isKeptActor(observed, actor, inputs);
    const scale = planActors(observed, { stage, stabiliser: memory.stabiliser, hash, keeps, nowMs });
    // Existing actors need their certificates even if no further actor can be created.
    const secured = await tryStep(observed.run, () => reconcileActorCertificates(look, certified));
    settle(look, secured);
    await markActors(look, scale, inputs.actor);
    await resumeActors(look, scale);
    settle(look, drainActors(look, scale));
    const { remember, refused = secured.refused } = await replaceActors(look, scale, inputs.actor);
    settle(look, reportTerminations(look));
    settle(look, reportDisruptions(look));
    return { remember, refused, given: { scale }, againSeconds: scale.againSeconds };
  },
  stuck({ observed, nowMs }) {
    const starting = observed.actors.filter(({ state }) => state === "starting");
    const isPodless = (sinceMs: number) => nowMs - sinceMs > NO_POD_SECONDS * 1000;
    const stuck = starting.find(({ pod, job }) => (pod ? stuckPod(pod, nowMs) : isPodless(createdMs(job))));
    return { subject: stuck?.pod ?? stuck?.job, waiting: starting.length > 0 };
  },
  report({ observed, memory, nowMs }, _, { lifecycle: { stage }, scale }, { refused, warning }) {
    const why = refused ?? (warning && eventBlocker(warning, "spec.actors.podTemplate"));
    const facts = { observed, stage, scale, refused: why, nowMs };
    return {
      conditions: [actorsCondition(facts)],
      status: { actors: actorsStatus(facts) },
      againSeconds: nextLossSeconds(observed.nextLossMs, memory.silentSinceMs, nowMs),
      certificates: [...memory.certificates.values()],
    };
  },
};

/** A controller that has just started knows no demand, so the earlier desired number counts for one more window. */
function stabiliserOf(run: Run, nowMs: number): Pick<ActorsMemory, "stabiliser" | "scaleDownSeconds"> {
  const { status } = run;
  const { scaleDownSeconds, max } = merged(run, status?.runtime?.spec as RuntimeSpec | undefined).spec.actors;
  const stabiliser = new Stabiliser(scaleDownSeconds);
  const before = status?.actors?.desired;
  if (before !== undefined) stabiliser.next(Math.min(before, max), nowMs / 1000);
  return { stabiliser, scaleDownSeconds };
}

/** A running actor that the learner has not heard for long is lost, whatever the state of its pod. */
function noteSilence({ observed: { actors, link }, memory, nowMs }: Look<ActorsMemory>): Map<string, number> {
  const silentSinceMs = silentSince(actors, link?.connected ?? false, memory.silentSinceMs, nowMs);
  for (const actor of actors) {
    const sinceMs = silentSinceMs.get(actor.name) ?? nowMs;
    if (nowMs - sinceMs >= SILENT_ACTOR_SECONDS * 1000) actor.state = "lost";
  }
  return silentSinceMs;
}

/** Returns the time until a pod on a lost node, or a silent actor, counts as lost. */
function nextLossSeconds(
  nextLossMs: number | undefined,
  silentSinceMs: ReadonlyMap<string, number>,
  nowMs: number,
): number | undefined {
  const silentMs = [...silentSinceMs.values()].map((sinceMs) => sinceMs + SILENT_ACTOR_SECONDS * 1000);
  const next = Math.min(nextLossMs ?? Number.POSITIVE_INFINITY, ...silentMs.filter((atMs) => atMs > nowMs));
  return Number.isFinite(next) ? (next - nowMs) / 1000 : undefined;
}
