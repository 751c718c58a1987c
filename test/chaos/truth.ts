/**
 * Compares the statuses that the controller writes with the objects of that time. The proxy in front of the API server sees every status;
 * the pods are observed directly, each second.
 */

import type { TrainingRunObject } from "../e2e/kubectl.ts";
import type { ApiRequest } from "../faults/api-request.ts";
import { type ClusterApi, isOver, type Pod } from "./cluster-api.ts";

/** A status may describe a state that ended so long before it was written: troubles of the API server delay caches. */
const WRITE_SECONDS = 45;
/** How long a status may stand after it has become untrue: a controller may be gone, and the next one waits for the Lease. */
const STAND_SECONDS = 240;

type Status = NonNullable<TrainingRunObject["status"]>;

/** Facts about the pods: the time at which each became false; undefined while it is true. */
interface Facts {
  learnerRuns: number | undefined;
  learnerGone: number | undefined;
  /** Seconds and numbers of actors' pods, newest last. */
  actors: [atMs: number, count: number][];
}

export class Truth {
  readonly findings: string[] = [];
  /** Statuses that were compared. */
  writes = 0;
  readonly #api: ClusterApi;
  readonly #run: string;
  /** Finished iterations by the run's own files. */
  readonly #done: () => number;
  /** The largest number so far: a learner that was lost before a checkpoint repeats iterations. */
  #ever = 0;
  readonly #iterations: number;
  readonly #facts: Facts = { learnerRuns: undefined, learnerGone: undefined, actors: [] };
  #lookedMs = 0;

  constructor(api: ClusterApi, run: string, iterations: number, done: () => number) {
    this.#api = api;
    this.#run = run;
    this.#done = done;
    this.#iterations = iterations;
  }

  /** Observes the pods now. While the API server is away, nothing counts as untrue. */
  async look(): Promise<void> {
    const pods = await this.#api.pods(this.#run).catch(() => undefined);
    const now = Date.now();
    if (pods === undefined) return;
    const away = now - this.#lookedMs > 5000;
    this.#lookedMs = now;
    const of = (component: string) =>
      pods.filter((pod) => pod.metadata.labels?.["app.kubernetes.io/component"] === component && !isOver(pod));
    const since = (before: number | undefined, holds: boolean) => (holds ? undefined : away ? now : (before ?? now));
    const facts = this.#facts;
    const learners = of("learner");
    facts.learnerRuns = since(facts.learnerRuns, learners.some(runs));
    facts.learnerGone = since(facts.learnerGone, learners.length === 0);
    // The number in the meantime is unknown.
    facts.actors.push([now, away ? Number.POSITIVE_INFINITY : of("actor").length]);
    while (now - facts.actors[0]![0] > STAND_SECONDS * 1000) facts.actors.shift();
  }

  /** For the proxy: after the API server has accepted a write, before the controller knows. */
  async afterWrite({ resource, subresource, name, code, answer }: ApiRequest): Promise<void> {
    const isStatus = resource === "longrun.dev/trainingruns" && subresource === "status" && name === this.#run;
    if (!isStatus || code !== 200) return;
    await this.look();
    this.writes++;
    this.#compare((answer as TrainingRunObject | undefined)?.status ?? {}, WRITE_SECONDS, "was written");
  }

  /** Compares a status that stands. */
  async standing(status: Status): Promise<void> {
    await this.look();
    this.#compare(status, STAND_SECONDS, "stands");
  }

  #compare(status: Status, allowedSeconds: number, how: string): void {
    const { phase, conditions = [], iteration = 0, actors } = status;
    const now = Date.now();
    const long = (sinceMs: number | undefined) => sinceMs !== undefined && now - sinceMs > allowedSeconds * 1000;
    const ago = (sinceMs: number | undefined) => `for ${Math.round((now - (sinceMs ?? now)) / 1000)} s`;
    const has = (type: string) => conditions.find((it) => it.type === type && it.status === "True");
    const untrue = (what: string) => {
      const finding = `untrue ${how}: ${what}`;
      if (!this.findings.includes(finding)) this.findings.push(finding);
    };
    const done = this.#done();
    this.#ever = Math.max(this.#ever, done);
    if ((phase === "Succeeded" || has("Succeeded")) && done !== this.#iterations)
      untrue(`Succeeded after ${done} of ${this.#iterations} iterations`);
    if (iteration > this.#ever) untrue(`iteration ${iteration}, and ${this.#ever} are finished`);
    const failed = has("Failed");
    if (phase === "Failed" && !(failed?.reason && failed.message)) untrue("Failed without a reason");
    if ((phase === "Failed") !== (failed !== undefined)) untrue(`phase ${phase} with Failed=${failed?.status}`);
    if ((phase === "Succeeded") !== (has("Succeeded") !== undefined)) untrue(`phase ${phase} against its condition`);
    if (has("Ready") && ["Pending", "Failed"].includes(phase ?? "Pending")) untrue(`Ready in phase ${phase}`);
    const { learnerRuns, learnerGone } = this.#facts;
    if (has("LearnerAvailable") && long(learnerRuns))
      untrue(`LearnerAvailable, and no learner has run ${ago(learnerRuns)}`);
    if (has("Suspended") && long(learnerGone))
      untrue(`Suspended, and a learner's pod has been there ${ago(learnerGone)}`);
    const seen = this.#facts.actors.filter(([atMs]) => now - atMs < allowedSeconds * 1000);
    const most = Math.max(...seen.map(([, count]) => count));
    if (seen.length > 0 && (actors?.running ?? 0) > most)
      untrue(`${actors?.running} actors run, and there were ${most} at the most`);
  }
}

const runs = ({ status }: Pod) => status?.containerStatuses?.some(({ state }) => state?.running !== undefined) ?? false;
