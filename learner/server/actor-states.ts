/** The learner's knowledge about its actors, for waits, metrics and the status. */
import type { longrun } from "../../proto/service.ts";
import type { HeldAttempt } from "../store/types.ts";

const AWAY = {
  connected: false,
  draining: false,
  slots: 0,
  isolationLevel: "",
  /** Isolation layers that its machine lacks. */
  isolationMissing: [] as string[],
  /** Versions of Python and its packages. */
  versions: {} as Record<string, string>,
  /** Slot-seconds since the actor started. */
  busySeconds: 0,
  aliveSeconds: 0,
};

export type ConnectedActor = typeof AWAY & { name: string };
export type KnownActor = ConnectedActor & { running: number };

export function actorStates(connected: readonly ConnectedActor[], attempts: readonly HeldAttempt[]): KnownActor[] {
  const running = new Map<string, number>(connected.map(({ name }) => [name, 0]));
  for (const { actor } of attempts) running.set(actor, (running.get(actor) ?? 0) + 1);
  const here = new Map(connected.map((actor) => [actor.name, actor]));
  return [...running].map(([name, count]) => ({ ...(here.get(name) ?? { ...AWAY, name }), running: count }));
}

export function statusOfActor(state: KnownActor): longrun.v1alpha1.ActorStatus.$Properties {
  const { name, isolationLevel, slots, running, connected, draining, busySeconds, aliveSeconds } = state;
  const busyShare = aliveSeconds > 0 ? busySeconds / aliveSeconds : 0;
  return { name, isolationLevel, slots, running, connected, draining, busyShare };
}
