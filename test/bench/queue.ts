/** How many executions a second go through the learner, and how long a free actor waits for the next. */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Backlog } from "./backlog.ts";
import { benchEnvironment } from "./environment.ts";
import type { Bench } from "./result.ts";

const SIMULATED = fileURLToPath(new URL("./simulated-actors.ts", import.meta.url));
const GOAL_RESULTS = 150;
const GOAL_MILLISECONDS = 50;

interface Measured {
  what: string;
  resultsPerSecond: number;
  /** From a program's end to the actor's next lease, seconds. */
  waits?: number[];
  /** CPU seconds of the learner's process for each second. */
  learnerCores: number;
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      actors: { type: "string", default: "1000" },
      queued: { type: "string", default: "10000" },
      seconds: { type: "string", default: "10" },
      programs: { type: "string", default: "2000" },
    },
  });
  const queued = Number(values.queued);
  const { environment, taskDirectory } = await benchEnvironment();
  const raw = [
    await through("no-op programs, one real actor with 2 slots", Number(values.programs), (backlog) =>
      backlog.startActors(1, { slots: 2, environment, taskDirectory }),
    ),
    await simulated(
      `${values.actors} simulated actors, programs of ${values.seconds} s`,
      queued,
      values.actors,
      values.seconds,
    ),
    await simulated(`${values.actors} simulated actors, programs of no time`, queued, values.actors, "0"),
  ];
  const [real, paced] = raw as [Measured, Measured];
  const milliseconds = (seconds: number) => `${(1000 * seconds).toFixed(1)} ms`;
  const rows = raw.map(({ what, resultsPerSecond, waits, learnerCores }) => ({
    "what works": what,
    "results/s": resultsPerSecond.toFixed(0),
    "end to next lease p50": waits ? milliseconds(quantile(waits, 0.5)) : "",
    p99: waits ? milliseconds(quantile(waits, 0.99)) : "",
    "learner's cores": learnerCores.toFixed(2),
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
      what: `p99 from a program's end to its actor's next lease, ${values.actors} actors, ${queued} queued`,
      goal: `<= ${GOAL_MILLISECONDS} ms`,
      measured: milliseconds(p99),
      met: 1000 * p99 <= GOAL_MILLISECONDS,
    },
  ];
  const method =
    `a real learner's server and store with all programs queued; ${values.programs} no-op programs by a real actor, and ${queued} ` +
    "by simulated ones, which are real clients in one process of their own on the same machine; results/s from the first result to the last";
  return { rows, goals, method, raw };
}

async function simulated(what: string, count: number, actors: string, seconds: string): Promise<Measured> {
  let waits: number[] = [];
  const measured = await through(what, count, async (backlog) => {
    const child = backlog.startProcess(SIMULATED, [backlog.address, backlog.actorTls, actors, seconds]);
    await new Promise((resolve) => child.once("message", resolve));
    return async () => {
      const answer = new Promise<number[]>((resolve) => child.once("message", (list) => resolve(list as number[])));
      child.send("waits");
      waits = await answer;
    };
  });
  return { ...measured, waits };
}

/** @param start starts what works; may return what is to be done when all programs have a result */
async function through(
  what: string,
  count: number,
  start: (backlog: Backlog) => Promise<void | (() => Promise<void>)>,
): Promise<Measured> {
  const backlog = await Backlog.start(Array.from({ length: count }, () => "pass\n"));
  try {
    const cpu = process.cpuUsage();
    const from = performance.now();
    const finish = await start(backlog);
    await backlog.done;
    const used = process.cpuUsage(cpu);
    const elapsed = (performance.now() - from) / 1000;
    await finish?.();
    const at = backlog.results().map((it) => it.at);
    const resultsPerSecond = (at.length - 1) / (Math.max(...at) - Math.min(...at));
    return { what, resultsPerSecond, learnerCores: (used.user + used.system) / 1e6 / elapsed };
  } finally {
    await backlog.close();
  }
}

function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

export const queue: Bench = { about: "executions a second through the learner, and waits for a lease", run };
