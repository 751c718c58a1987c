/** Plans which runs of an experiment fit into a time budget. */

/** Returns `90s`, `30m`, `8h` in seconds. @throws RangeError */
export function parseBudget(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)([smh])$/.exec(text) ?? [];
  const seconds = Number(count) * { s: 1, m: 60, h: 3600 }[unit as "s" | "m" | "h"];
  if (!(seconds > 0)) throw new RangeError(`--budget is ${text}; give a time such as 90s, 30m or 8h`);
  return seconds;
}

/** Returns e.g. `1 h 5 min`, `12 min`, `40 s`. */
export function duration(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The parts of an experiment's run that matter for a budget. */
export interface Priced {
  seed: number;
  /** Kind of run; runs of one kind cost about the same. */
  kind: string;
}

export interface Plan<Run> {
  /** In running order. */
  now: Run[];
  /** Runs that do not fit. */
  later: Run[];
  /** Seconds of the present runs, and of the others. */
  nowSeconds: number;
  laterSeconds: number;
  /** Seeds all of whose runs are finished, or will be. */
  wholeSeeds: number[];
  /** Seeds some of whose runs are finished, or will be, and others not. */
  brokenSeeds: number[];
}

/**
 * Takes runs in order until one does not fit, so that seeds are completed one after the other. Finished runs cost nothing.
 *
 * @param secondsOf a run's seconds, if known
 */
export function planOf<Run extends Priced>(
  runs: readonly Run[],
  options: { budgetSeconds: number; isFinished: (run: Run) => boolean; secondsOf: (run: Run) => number },
): Plan<Run> {
  const { budgetSeconds, isFinished, secondsOf } = options;
  const open = runs.filter((run) => !isFinished(run));
  let nowSeconds = 0;
  const fitting = open.findIndex((run) => {
    if (nowSeconds + secondsOf(run) > budgetSeconds) return true;
    nowSeconds += secondsOf(run);
    return false;
  });
  const now = fitting < 0 ? open : open.slice(0, fitting);
  const later = fitting < 0 ? [] : open.slice(fitting);
  const seeds = [...new Set(runs.map(({ seed }) => seed))].sort((a, b) => a - b);
  const lacking = (seed: number) => later.some((run) => run.seed === seed);
  const begun = (seed: number) => runs.some((run) => run.seed === seed && !later.includes(run));
  return {
    ...{ now, later, nowSeconds },
    laterSeconds: later.reduce((sum, run) => sum + secondsOf(run), 0),
    wholeSeeds: seeds.filter((seed) => !lacking(seed)),
    brokenSeeds: seeds.filter((seed) => lacking(seed) && begun(seed)),
  };
}

/** Returns the lines that are printed before anything runs. */
export function describePlan<Run extends Priced>(plan: Plan<Run>, all: number, budgetSeconds: number): string[] {
  const { now, later, nowSeconds, laterSeconds, wholeSeeds, brokenSeeds } = plan;
  const finished = all - now.length - later.length;
  const list = (seeds: number[]) => (seeds.length > 0 ? seeds.join(", ") : "none");
  const lines = [
    `${all} runs, of which ${finished} are finished; the other ${now.length + later.length} take about ${duration(nowSeconds + laterSeconds)}.`,
    `Budget ${duration(budgetSeconds)}: ${now.length} run now, about ${duration(nowSeconds)}. Whole afterwards: seeds ${list(wholeSeeds)}.`,
  ];
  if (later.length > 0)
    lines.push(
      `Fewer than asked for: ${later.length} runs, about ${duration(laterSeconds)}, are left for the same command later` +
        `${brokenSeeds.length > 0 ? `; seeds in part: ${list(brokenSeeds)}` : ""}.`,
    );
  return lines;
}
