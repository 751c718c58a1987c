/** Measures the share of its time in which an actor executes programs while executions wait: a real learner's server, real actors. */
import { parseArgs } from "node:util";
import { uniforms } from "../../learner/engine/model/random.ts";
import { Backlog } from "./backlog.ts";
import { benchEnvironment } from "./environment.ts";
import { type Bench, median } from "./result.ts";

const GOAL = 0.95;

/** Programs that take about `seconds`. */
const PROGRAMS: Record<string, (seconds: number) => string> = {
  sleeps: (seconds) => `import time\ntime.sleep(${seconds})\n`,
  works: (seconds) =>
    `import time\nend = time.perf_counter() + ${seconds}\nwhile time.perf_counter() < end:\n    pass\n`,
};

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      actors: { type: "string", default: "1" },
      programs: { type: "string", default: "60" },
      seconds: { type: "string", default: "0.1:0.9" },
    },
  });
  const [shortest, longest] = values.seconds.split(":").map(Number) as [number, number];
  const { environment, taskDirectory } = await benchEnvironment();
  const raw: Record<string, Record<string, { at: number; seconds: number }[]>> = {};
  for (const [kind, program] of Object.entries(PROGRAMS)) {
    const next = uniforms(0, "bench", "busy");
    const programs = Array.from({ length: Number(values.programs) }, () =>
      program(Math.round(1000 * (shortest + (longest - shortest) * next())) / 1000),
    );
    raw[kind] = await executed(programs, Number(values.actors), environment, taskDirectory);
  }
  const shares = (kind: string) => Object.values(raw[kind]!).map(busyShare);
  const rows = Object.keys(raw).map((kind) => ({
    "a program that": kind,
    actors: values.actors,
    "busy share": `${(100 * median(shares(kind))).toFixed(1)} %`,
    "between two programs": `${(1000 * median(Object.values(raw[kind]!).map(gapSeconds))).toFixed(1)} ms`,
  }));
  const goals = Object.keys(raw).map((kind) => ({
    what: `actor busy while programs wait that ${kind.replace(/s$/, "")}`,
    goal: `>= ${100 * GOAL} %`,
    measured: `${(100 * median(shares(kind))).toFixed(1)} %`,
    met: median(shares(kind)) >= GOAL,
  }));
  const method =
    `${values.programs} programs of ${shortest} to ${longest} s in the queue, actors of one slot each; from an actor's ` +
    "first result to its last, the share of the time that its programs ran";
  return { rows, goals, method, raw };
}

/** Executes all programs. Returns when each ended and how long it took, by actor. */
async function executed(programs: string[], actors: number, environment: string, taskDirectory: string) {
  const backlog = await Backlog.start(programs);
  try {
    await backlog.startActors(actors, { slots: 1, environment, taskDirectory });
    await backlog.done;
    const byActor: Record<string, { at: number; seconds: number }[]> = {};
    for (const { at, result } of backlog.results()) {
      byActor[result.actor] ??= [];
      byActor[result.actor]!.push({ at, seconds: result.durationSeconds });
    }
    return byActor;
  } finally {
    await backlog.close();
  }
}

/** Returns, for an actor's results in order, the run time between the first end and the last, divided by that time. */
function busyShare(results: { at: number; seconds: number }[]): number {
  const { running, wall } = between(results);
  return running / wall;
}

function gapSeconds(results: { at: number; seconds: number }[]): number {
  const { running, wall } = between(results);
  return (wall - running) / (results.length - 1);
}

function between(results: { at: number; seconds: number }[]) {
  const ordered = [...results].sort((a, b) => a.at - b.at);
  const running = ordered.slice(1).reduce((sum, { seconds }) => sum + seconds, 0);
  return { running, wall: ordered.at(-1)!.at - ordered[0]!.at };
}

export const busy: Bench = { about: "share of an actor's time in which programs run while executions wait", run };
