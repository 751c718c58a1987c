/** Determines the number of actors. Pure; shared by the local backend and the Kubernetes controller. */

export interface Demand {
  /** Executions that wait for an actor. */
  queued: number;
  /** Executions that an actor runs. */
  running: number;
}

export interface ActorBounds {
  min: number;
  max: number;
  /** Executions that one actor runs at once. */
  slots: number;
  autoscaling: "Demand" | "External";
  /** Desired actors under External. */
  replicas?: number | undefined;
}

/** Returns clamp(ceil((queued + running) / slots), min, max); under External the given replicas. */
export function desiredActors(demand: Demand, { min, max, slots, autoscaling, replicas }: ActorBounds): number {
  if (autoscaling === "External") return replicas ?? min;
  return Math.min(max, Math.max(min, Math.ceil((demand.queued + demand.running) / slots)));
}

/**
 * Follows a rise of `desiredActors` at once. Falls only to the maximum within the last `scaleDownSeconds`, so that the gap between two
 * batches ends no actor.
 */
export class Stabiliser {
  readonly #scaleDownSeconds: number;
  #recent: { atSeconds: number; desired: number }[] = [];

  constructor(scaleDownSeconds: number) {
    this.#scaleDownSeconds = scaleDownSeconds;
  }

  /** @param atSeconds time of a monotonic clock */
  next(desired: number, atSeconds: number): number {
    this.#recent = this.#recent.filter((entry) => entry.atSeconds > atSeconds - this.#scaleDownSeconds);
    this.#recent.push({ atSeconds, desired });
    return Math.max(...this.#recent.map((entry) => entry.desired));
  }
}

export interface ActorLoad {
  name: string;
  /** Executions that the actor runs now. */
  running: number;
}

/** @returns the actors to drain so that `desired` remain: idle ones first, then the least loaded, the youngest first */
export function actorsToDrain(actors: ActorLoad[], desired: number): string[] {
  const excess = Math.max(0, actors.length - desired);
  return actors
    .map((actor, age) => ({ ...actor, age }))
    .sort((a, b) => a.running - b.running || b.age - a.age)
    .slice(0, excess)
    .map(({ name }) => name);
}
