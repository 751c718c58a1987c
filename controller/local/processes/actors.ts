/** The actor processes of a run, as many as the queued and running executions need. */
import type { Actors, Restart } from "../../../crds/trainingrun.ts";
import { ControllerError } from "../../errors.ts";
import {
  type ActorLoad,
  actorsToDrain,
  type Demand,
  desiredActors,
  Stabiliser,
} from "../../operator/parts/actors/autoscale.ts";
import { describeExit, type Exit, type Program, SupervisedProcess } from "./process.ts";

interface ActorPoolOptions {
  actors: Actors;
  restart: Restart;
  /** @param index the actor's index, from 0 */
  program: (name: string, index: number) => Program;
  /** Seconds that a drained actor may take to finish its programs. */
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
  #demand: Demand = { queued: 0, running: 0 };
  #loads: ActorLoad[] = [];
  #stopped = false;
  /** An actor that ended by itself (idle, or drained because its learner is about to end) is not replaced before this time. */
  #replaceAtSeconds = 0;
  #replacing: NodeJS.Timeout | undefined;

  constructor(options: ActorPoolOptions) {
    this.#options = options;
    this.#stabiliser = new Stabiliser(options.actors.scaleDownSeconds);
    this.failure = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failure.catch(() => {});
  }

  /** Starts and drains actors to match the demand. */
  scale(demand: Demand, loads: ActorLoad[] = []): void {
    this.#demand = demand;
    this.#loads = loads;
    this.#reconcile();
  }

  /** Replaces ended actors at once, because a learner that is back needs them. */
  replaceNow(): void {
    this.#replaceAtSeconds = 0;
    this.#reconcile();
  }

  #reconcile(): void {
    if (this.#stopped) return;
    const now = this.#nowSeconds();
    const desired = this.#stabiliser.next(desiredActors(this.#demand, this.#options.actors), now);
    const running = new Map(this.#loads.map((load) => [load.name, load.running]));
    const present = [...this.#actors.keys()].map((name) => ({ name, running: running.get(name) ?? 0 }));
    for (const name of actorsToDrain(present, desired)) this.#drain(name);
    if (now < this.#replaceAtSeconds) return;
    for (let index = 0; this.#actors.size < desired; index++) this.#start(index);
  }

  #nowSeconds(): number {
    return (this.#options.now?.() ?? performance.now()) / 1000;
  }

  /** Ends all actors at once; their executions return to the queue. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#replacing);
    const { stopGraceSeconds } = this.#options.actors;
    const all = [...this.#actors.values(), ...this.#draining];
    await Promise.all(all.map((actor) => actor.stop(stopGraceSeconds, { atOnce: true })));
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
      else if (kind === "ended") this.#replaceLater();
    });
  }

  #replaceLater(): void {
    if (this.#stopped) return;
    const { maxBackoffSeconds } = this.#options.restart;
    this.#replaceAtSeconds = this.#nowSeconds() + maxBackoffSeconds;
    clearTimeout(this.#replacing);
    this.#replacing = setTimeout(() => this.replaceNow(), maxBackoffSeconds * 1000);
  }

  #drain(name: string): void {
    const actor = this.#actors.get(name)!;
    this.#actors.delete(name);
    this.#draining.add(actor);
    void actor.stop(this.#options.drainSeconds);
  }
}

function actorFailure(name: string, kind: string, exit: Exit): ControllerError {
  return kind === "gaveUp"
    ? new ControllerError("failed", `${name} keeps failing (${describeExit(exit)})`)
    : new ControllerError("input", `${name} cannot start: ${exit.said || describeExit(exit)}`);
}
