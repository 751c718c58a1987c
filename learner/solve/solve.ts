/** Searches for the best solution of a task at test time: asks for solutions, executes and grades them, until the budget is spent. */
import { setTimeout as sleep } from "node:timers/promises";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { StatusMessage } from "../../proto/service.ts";
import { budgetText, type SolveSettings } from "../../proto/solve.ts";
import { uniforms } from "../engine/index.ts";
import { duration } from "../metrics/format.ts";
import type { RunSummary, SolveSummary } from "../metrics/summary.ts";
import { type Drawn, sampleId } from "../rollout/drawn.ts";
import type { Generation } from "../rollout/generation.ts";
import type { Rollout } from "../rollout/rollout.ts";
import type { SearchPrompts } from "../rollout/search-prompts.ts";
import type { LearnerServer } from "../server/server.ts";
import { Phase } from "../server/status.ts";
import type { WaitOptions } from "../server/waiting.ts";
import type { Store } from "../store/store.ts";
import type { Tasks } from "../tasks/tasks.ts";
import type { Usage } from "./endpoint/usage.ts";
import { Pace } from "./pace.ts";
import { choose } from "./search.ts";
import { secondsAt } from "./sessions.ts";
import { PURPOSE } from "./settings.ts";
import { type Choice, nodeOf, type SolutionNode, Tree } from "./tree.ts";

/** Shortest time between two looks at the budget of time, and between two writes of how much of it is spent. */
const BEAT_SECONDS = 5;

/** The parts of a run that a search uses. */
export interface Solving {
  spec: Pick<TrainingRunSpec, "seed" | "model">;
  tasks: Pick<Tasks, "all">;
  store: Store;
  rollout: Pick<Rollout, "search">;
  server: Pick<LearnerServer, "waitForChange">;
  waiting: WaitOptions;
  progress: { state: { iteration: number } };
  phases: { readonly stop: AbortSignal };
  status: { update(change: StatusMessage): void };
  grades: { gradeFinished(): void };
  files: {
    readonly summary: Pick<RunSummary, "solve">;
    updateSummary(change: Pick<RunSummary, "solve">): Promise<void>;
    showBest(): Promise<void>;
    notice(text: string): void;
  };
}

/** The endpoint that writes, if none of the machine's engines does. */
export interface Writing {
  usage(): Usage;
  /** Ends requests under way. */
  stop(): void;
}

/** Searches, or continues an interrupted search. @returns a line for people @throws the reason of `phases.stop` */
export async function solveTask(run: Solving, settings: SolveSettings, endpoint?: Writing): Promise<string> {
  const search = new Searching(run, settings, endpoint);
  try {
    return await search.run();
  } finally {
    await search.note();
  }
}

const some = (solutions: number): string => `${solutions} ${solutions === 1 ? "solution" : "solutions"}`;

class Searching {
  readonly #run: Solving;
  readonly #settings: SolveSettings;
  readonly #endpoint: Writing | undefined;
  readonly #tree: Tree;
  readonly #metric: string;
  readonly #pace: Pace;
  readonly #generation: Generation;
  readonly #sessions: SolveSummary["sessions"];
  /** Solutions without a result, and when they were asked for, in milliseconds of `performance.now`; absent: by an earlier process. */
  readonly #open = new Map<string, number | undefined>();
  /** Solutions that are begun, and whose prompt is not chosen yet. */
  #unchosen = 0;
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor(run: Solving, settings: SolveSettings, endpoint: Writing | undefined) {
    const { store, tasks, spec, progress, files, rollout } = run;
    const { name, grader } = tasks.all[0]!;
    this.#run = run;
    this.#settings = settings;
    this.#endpoint = endpoint;
    this.#metric = grader.metric;
    run.grades.gradeFinished(); // what an earlier process left
    this.#tree = new Tree(grader.direction, store.samplesFor(PURPOSE).map(nodeOf));
    for (const { id, state } of this.#tree.nodes) if (state === "pending") this.#open.set(id, undefined);
    this.#pace = new Pace(settings.slots, settings.endpoint?.concurrency ?? spec.model.generationBatchSize);
    const now = Date.now();
    this.#sessions = [...(files.summary.solve?.sessions ?? []), [now, now]];
    const version = { iteration: progress.state.iteration, purpose: PURPOSE };
    this.#generation = rollout.search(name, version, (number, prompts) => this.#draw(number, prompts));
  }

  async run(): Promise<string> {
    const { server, waiting, phases } = this.#run;
    const generation = this.#generation;
    for (;;) {
      phases.stop.throwIfAborted();
      await this.#takeResults();
      const { seconds = Number.POSITIVE_INFINITY } = this.#settings.budget;
      const secondsLeft = seconds - this.#seconds;
      if (secondsLeft <= 0) return await this.#endInTime();
      const { writing, executing } = this.#flow;
      // With a static policy as instrumenter there is no room until all that were begun are stored.
      const wanted = Math.min(generation.room, this.#pace.wanted({ writing, executing, left: this.#left }));
      if (wanted > 0) {
        this.#unchosen += wanted;
        generation.begin(wanted);
      } else if (writing + executing === 0) {
        if (this.#open.size === 0) return this.#end();
        continue; // results came since they were last taken
      }
      await this.#show();
      const wake = new AbortController();
      const beat = sleep(1000 * Math.min(BEAT_SECONDS, secondsLeft), undefined, { signal: wake.signal }).catch(
        () => {},
      );
      const other = generation.isUnderWay ? Promise.race([generation.changed(), beat]) : beat;
      const idleSeconds = this.#flow.executing > 0 ? waiting.idleSeconds : Number.POSITIVE_INFINITY;
      await server.waitForChange({ ...waiting, ...(idleSeconds !== undefined && { idleSeconds }), other });
      wake.abort();
    }
  }

  /** Writes what is spent and found to `summary.json`. */
  async note(): Promise<void> {
    this.#notedAt = performance.now();
    this.#sessions.at(-1)![1] = Date.now();
    const { nodes } = this.#tree;
    const count = (state: SolutionNode["state"]) => nodes.filter((node) => node.state === state).length;
    const best = this.#tree.best();
    const usage = this.#endpoint?.usage();
    await this.#run.files.updateSummary({
      solve: {
        metric: this.#metric,
        direction: this.#tree.direction,
        sessions: this.#sessions,
        asked: nodes.length,
        valid: count("valid"),
        failed: count("failed"),
        ...(best && { best: { id: best.id, score: best.score! } }),
        ...(usage && { usage }),
      },
    });
  }

  /** Chooses the prompt of a sample: an operator whose prompt fits, the drafts' always does. */
  #draw(number: number, prompts: SearchPrompts): Drawn {
    const next = uniforms(this.#run.spec.seed, "search", number);
    for (;;) {
      const { operator, parent }: Choice = choose(this.#tree, this.#settings, next);
      const sample = parent === undefined ? undefined : this.#run.store.sample(parent)!;
      const drawn = operator === "draft" ? prompts.scratch : prompts[operator](sample!);
      if (drawn === undefined) {
        this.#tree.close(parent!, operator);
        continue;
      }
      const id = sampleId(number);
      this.#unchosen--;
      this.#tree.put({ id, parent, operator, depth: drawn.depth ?? 0, state: "pending", hasProgram: false });
      this.#open.set(id, performance.now());
      return drawn;
    }
  }

  /** Brings the tree up to the store. */
  async #takeResults(): Promise<void> {
    const { store, grades, files } = this.#run;
    grades.gradeFinished();
    const before = this.#tree.best();
    for (const [id, askedAt] of this.#open) {
      const sample = store.sample(id);
      if (sample === undefined) continue; // it is being written
      if (askedAt !== undefined && this.#tree.get(id)!.state === "pending") {
        this.#pace.wrote((performance.now() - askedAt) / 1000);
        this.#open.set(id, undefined);
      }
      const node = nodeOf(sample);
      if (node.state === "pending") continue;
      this.#tree.put(node);
      this.#open.delete(id);
      if (sample.result) this.#pace.ran(sample.result.durationSeconds);
    }
    const best = this.#tree.best();
    if (best === undefined || best.id === before?.id) return;
    await files.showBest();
    files.notice(`Best so far: ${this.#foundText(best)} (${some(this.#finished)}, ${duration(this.#seconds)})`);
  }

  #foundText({ id, score, operator, parent }: SolutionNode): string {
    return `${this.#metric} ${score}: ${id}, ${operator}${parent === undefined ? "" : ` of ${parent}`}`;
  }

  get #finished(): number {
    return this.#tree.nodes.filter(({ state }) => state !== "pending").length;
  }

  get #seconds(): number {
    const now = Date.now();
    return secondsAt([...this.#sessions.slice(0, -1), [this.#sessions.at(-1)![0], now]], now);
  }

  get #flow() {
    const { queued, running } = this.#run.store.counts(PURPOSE);
    const { begun, launched } = this.#generation;
    return { writing: begun - launched.samples, executing: queued + running };
  }

  /** Solutions that may still be asked for. */
  get #left(): number {
    const { executions = Number.POSITIVE_INFINITY, tokens = Number.POSITIVE_INFINITY } = this.#settings.budget;
    const { promptTokens = 0, answerTokens = 0 } = this.#endpoint?.usage() ?? {};
    return promptTokens + answerTokens >= tokens ? 0 : executions - this.#tree.nodes.length - this.#unchosen;
  }

  async #show(): Promise<void> {
    if (performance.now() - this.#notedAt >= BEAT_SECONDS * 1000) await this.note();
    const best = this.#tree.best();
    const { writing } = this.#flow;
    const { cost } = this.#endpoint?.usage() ?? {};
    const said = [
      writing > 0 && `${writing} being written`,
      best ? `best ${this.#metric} ${best.score}` : "no valid program yet",
      cost !== undefined && `${cost.toFixed(2)} USD`,
    ];
    this.#run.status.update({
      phase: Phase.EXECUTING,
      iteration: 0,
      phaseTotal: this.#settings.budget.executions ?? 0,
      phaseDone: this.#finished,
      message: said.filter(Boolean).join(" · "),
    });
  }

  /** Ends with the budget of time: programs that run are stopped, and what is written then never runs. */
  async #endInTime(): Promise<string> {
    const { store } = this.#run;
    const discard = () => store.discardUnfinished("the budget of time is spent", PURPOSE);
    discard();
    this.#endpoint?.stop();
    await this.#generation.end().catch((error) => {
      if (this.#endpoint === undefined) throw error;
    });
    discard();
    await this.#takeResults();
    // What an endpoint did not write in time was never stored.
    for (const id of this.#open.keys()) this.#tree.put({ ...this.#tree.get(id)!, state: "lost" });
    return this.#end();
  }

  #end(): string {
    const best = this.#tree.best();
    const found = best ? `the best is ${this.#foundText(best)}` : "none is valid";
    return `${some(this.#finished)} (${budgetText(this.#settings.budget)}), ${found}`;
  }
}
