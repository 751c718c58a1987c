/** The actor processes of a run: as many as there is work for. */
import type { Actors, Restart } from "../../crds/trainingrun.ts";
import { type ActorLoad, actorsToDrain, type Demand, desiredActors, Stabiliser } from "../autoscale.ts";
import { ControllerError } from "../errors.ts";
import { describeExit, type Exit, type Program, SupervisedProcess } from "./process.ts";

export interface ActorPoolOptions {
  actors: Actors;
  restart: Restart;
  /** @param index of the actor, from 0 */
  program: (name: string, index: number) => Program;
  /** Seconds that a drained actor may take for what it runs. */
  drainSeconds: number;
  onRestart: (name: string, exit: Exit, waitSeconds: number) => void;
  onOutput: (name: string, line: string) => void;
  now?: () => number;
}

const BAD_INPUT = 2;

export class ActorPool {
  /** Rejects when an actor cannot be kept alive; never resolves. */
  readonly failure: Promise<never>;
  readonly #options: ActorPoolOptions;
  readonly #actors = new Map<string, SupervisedProcess>();
  readonly #draining = new Set<SupervisedProcess>();
  readonly #stabiliser: Stabiliser;
  #fail: (error: Error) => void = () => {};
  #desired = 0;
  #stopped = false;

  constructor(options: ActorPoolOptions) {
    this.#options = options;
    this.#stabiliser = new Stabiliser(options.actors.scaleDownSeconds);
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => {});
  }

  /** Starts and drains actors so that there are as many as the demand asks for. */
  scale(demand: Demand, loads: ActorLoad[] = []): void {
    if (this.#stopped) return;
    const { actors, now = () => performance.now() } = this.#options;
    this.#desired = this.#stabiliser.next(desiredActors(demand, actors), now() / 1000);
    const known = new Map(loads.map((load) => [load.name, load.running]));
    const present = [...this.#actors.keys()].map((name) => ({ name, running: known.get(name) ?? 0 }));
    for (const name of actorsToDrain(present, this.#desired)) this.#drain(name);
    for (let index = 0; this.#actors.size < this.#desired; index++) this.#start(index);
  }

  /** Ends all of them at once: what they run goes back to the queue. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const { stopGraceSeconds } = this.#options.actors;
    const all = [...this.#actors.values(), ...this.#draining];
    await Promise.all(all.map((actor) => actor.stop(stopGraceSeconds, { again: true })));
  }

  #start(index: number): void {
    const name = `actor-${index}`;
    const namesake = [...this.#draining].some((actor) => actor.name === name);
    if (this.#actors.has(name) || namesake) return;
    const { restart, program, onRestart, onOutput } = this.#options;
    const actor = new SupervisedProcess(program(name, index), {
      restart,
      isEnd: (exit) => exit.status === 0 || exit.status === BAD_INPUT,
      onRestart: (exit, waitSeconds) => onRestart(name, exit, waitSeconds),
      onOutput: (line) => onOutput(name, line),
    });
    this.#actors.set(name, actor);
    actor.fate.then(({ kind, exit }) => {
      if (this.#actors.get(name) === actor) this.#actors.delete(name);
      this.#draining.delete(actor);
      const failed = kind === "gaveUp" || (kind === "ended" && exit.status !== 0);
      if (failed) this.#fail(actorFailure(name, kind, exit));
      // It was idle for actors.idleSeconds, or was asked to drain by the learner.
      else if (kind === "ended" && !this.#stopped && this.#actors.size < this.#desired) this.#start(index);
    });
  }

  #drain(name: string): void {
    const actor = this.#actors.get(name)!;
    this.#actors.delete(name);
    this.#draining.add(actor);
    void actor.stop(this.#options.drainSeconds);
  }
}

function actorFailure(name: string, kind: string, exit: Exit): ControllerError {
  const said = exit.lastLines.length > 0 ? `: ${exit.lastLines.join(" | ")}` : "";
  return kind === "gaveUp"
    ? new ControllerError("failed", `${name} keeps failing (${describeExit(exit)})${said}`)
    : new ControllerError("input", `${name} cannot start${said}`);
}
