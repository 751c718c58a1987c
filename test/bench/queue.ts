/** Measures how many executions per second pass through the learner, and how long a free actor waits for the next one. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Backlog } from "./backlog.ts";
import { benchEnvironment } from "./environment.ts";
import { type Bench, quantile } from "./result.ts";
import type { Found } from "./simulated-actors.ts";

const SIMULATED = fileURLToPath(new URL("./simulated-actors.ts", import.meta.url));
const GOAL_RESULTS = 150;
const GOAL_MILLISECONDS = 50;

interface Measured {
  what: string;
  resultsPerSecond: number;
  /** Seconds from a program's end to the actor's next lease. */
  waits?: number[];
  /** CPU seconds of the learner's process per second. */
  learnerCores: number;
  /** The same for the processes that simulate actors, together. */
  actorsCores?: number;
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      actors: { type: "string", default: "1000" },
      queued: { type: "string", default: "10000" },
      seconds: { type: "string", default: "5" },
      programs: { type: "string", default: "1000" },
      processes: { type: "string", default: "1" },
    },
  });
  const queued = Number(values.queued);
  const actors = Number(values.actors);
  const processes = Number(values.processes);
  const { environment, taskDirectory } = await benchEnvironment();
  const raw = [
    await through("no-op programs, one real actor with 2 slots", Number(values.programs), {
      async start(backlog) {
        await backlog.startActors(1, { slots: 2, environment, taskDirectory });
      },
    }),
    await simulated(`${actors} simulated actors, programs of ${values.seconds} s`, {
      ...{ queued, actors, processes, seconds: values.seconds },
    }),
    await simulated(`${actors} simulated actors, programs of no time`, { queued, actors, processes, seconds: "0" }),
  ];
  const [real, paced] = raw as [Measured, Measured];
  const milliseconds = (seconds: number) => `${(1000 * seconds).toFixed(1)} ms`;
  const rows = raw.map(({ what, resultsPerSecond, waits, learnerCores, actorsCores }) => ({
    "what works": what,
    "results/s": resultsPerSecond.toFixed(0),
    "end to next lease p50": waits ? milliseconds(quantile(waits, 0.5)) : "",
    p99: waits ? milliseconds(quantile(waits, 0.99)) : "",
    "learner's cores": learnerCores.toFixed(2),
    "actors' cores": actorsCores?.toFixed(2) ?? "",
  }));
  const p99 = quantile(paced.waits!, 0.99);
  const goals = [
    {
      what: "no-op programs through queue, gRPC, sandbox, result and store",
      goal: `>= ${GOAL_RESULTS}/s`,
      measured: `${real.resultsPerSecond.toFixed(0)}/s`,
      met: real.resultsPerSecond >= GOAL_RESULTS,
    },
    {
      what: `p99 from a program's end to its actor's next lease, ${actors} actors, ${queued} queued`,
      goal: `<= ${GOAL_MILLISECONDS} ms`,
      measured: milliseconds(p99),
      met: 1000 * p99 <= GOAL_MILLISECONDS,
    },
  ];
  const method =
    `a real learner's server and store with all programs queued; ${values.programs} no-op programs by a real actor, and ${queued} ` +
    `by simulated ones, which are real clients in ${processes} process${processes === 1 ? "" : "es"} of their own on the same machine; counted from the first result after ` +
    "all are connected to the last; the real actor learns meanwhile that its programs import nothing";
  // Percentiles, the longest last: all values would be ten thousand lines.
  const percentiles = (values: number[]) =>
    Array.from({ length: 101 }, (_, percent) => quantile(values, percent / 100));
  const kept = raw.map(({ waits, ...rest }) => ({ ...rest, ...(waits && { waitPercentiles: percentiles(waits) }) }));
  return { rows, goals, method, raw: kept };
}

interface Simulation {
  queued: number;
  actors: number;
  /** Number of processes that simulate actors. */
  processes: number;
  /** Seconds of each program. */
  seconds: string;
}

async function simulated(what: string, { queued, actors, processes, seconds }: Simulation): Promise<Measured> {
  let children: ChildProcess[] = [];
  const found: Found[] = [];
  const measured = await through(what, queued, {
    async start(backlog) {
      for (let index = 0; index < actors; index++) await backlog.certify(`simulated-${index}`);
      children = Array.from({ length: processes }, (_, index) => {
        const first = Math.round((index * actors) / processes);
        const count = Math.round(((index + 1) * actors) / processes) - first;
        return backlog.startProcess(SIMULATED, [
          backlog.address,
          backlog.tlsDirectory,
          String(first),
          String(count),
          seconds,
        ]);
      });
      await Promise.all(children.map((child) => once(child, "message")));
      for (const child of children) child.send("begin");
    },
    count() {
      for (const child of children) child.send("count");
    },
    async finish() {
      for (const child of children) {
        const answer = once(child, "message");
        child.send("tell");
        const [told] = (await answer) as [Found];
        found.push(told);
      }
    },
  });
  const actorsCores = found.reduce((sum, { cores }) => sum + cores, 0);
  return { ...measured, waits: found.flatMap(({ waits }) => waits), actorsCores };
}

interface Work {
  /** Starts the processes that work; everything before is not counted. */
  start: (backlog: Backlog) => Promise<void>;
  /** Called when counting begins. */
  count?: () => void;
  /** Called when all programs have a result. */
  finish?: () => Promise<void>;
}

async function through(what: string, programs: number, { start, count, finish }: Work): Promise<Measured> {
  const backlog = await Backlog.start(Array.from({ length: programs }, () => "pass\n"));
  try {
    await start(backlog);
    await backlog.nextResult();
    const cpu = process.cpuUsage();
    const from = performance.now() / 1000;
    count?.();
    await backlog.done;
    const used = process.cpuUsage(cpu);
    const elapsed = performance.now() / 1000 - from;
    await finish?.();
    const counted = backlog.results().filter(({ at }) => at > from).length;
    return { what, resultsPerSecond: counted / elapsed, learnerCores: (used.user + used.system) / 1e6 / elapsed };
  } finally {
    await backlog.close();
  }
}

export const queue: Bench = { about: "executions a second through the learner, and waits for a lease", run };
