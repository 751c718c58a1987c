/** How the actors stand, for the loop's waits, metrics and the status. */
import type { longrun } from "../../proto/service.ts";
import type { HeldAttempt } from "../store/types.ts";
import type { ActorState } from "./options.ts";

/** What is known of an actor by its stream. */
type Connected = Omit<ActorState, "name" | "connected" | "running"> & { readonly actor: string };

const AWAY: Omit<ActorState, "name" | "running"> = {
  ...{ connected: false, draining: false, slots: 0, isolationLevel: "", isolationMissing: [], versions: {} },
  ...{ busySeconds: 0, aliveSeconds: 0 },
};

/** Actors that are connected, and those that are not and still hold leases. */
export function actorStates(streams: Iterable<Connected>, attempts: readonly HeldAttempt[]): ActorState[] {
  const running = new Map<string, number>();
  for (const { actor } of attempts) running.set(actor, (running.get(actor) ?? 0) + 1);
  const states: ActorState[] = [];
  for (const {
    actor,
    draining,
    slots,
    isolationLevel,
    isolationMissing,
    versions,
    busySeconds,
    aliveSeconds,
  } of streams) {
    states.push({
      ...{ name: actor, connected: true, draining, slots, running: running.get(actor) ?? 0 },
      ...{ isolationLevel, isolationMissing, versions, busySeconds, aliveSeconds },
    });
    running.delete(actor);
  }
  return states.concat([...running].map(([name, count]) => ({ ...AWAY, name, running: count })));
}

export function statusOfActor(state: ActorState): longrun.v1alpha1.ActorStatus.$Properties {
  const { name, isolationLevel, slots, running, connected, draining, busySeconds, aliveSeconds } = state;
  const busyShare = aliveSeconds > 0 ? busySeconds / aliveSeconds : 0;
  return { name, isolationLevel, slots, running, connected, draining, busyShare };
}
