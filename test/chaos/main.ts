/**
 * `npm run test:chaos -- --hours H [--local] [--seed S] [--out FOLDER]`: small runs one after another, on a real node or with `longrun
 * run` (--local), while random troubles strike. Everything is checked after each run. See README.md.
 *
 * --seed: decides the order and times of the troubles. Run number n has seed S + n, so `--seed` with a run's own seed begins with that run.
 * --out: the folder of the result. Exit status: 0 no findings, 1 findings, 2 bad arguments, or missing
 * programs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type BenchResult, print, save } from "../bench/result.ts";
import { lookForTools } from "../lane-tools.ts";
import { LocalWorld } from "./local.ts";
import { NodeWorld } from "./node.ts";
import { schedule, type World } from "./trouble.ts";

/** Events before a finding that are printed with it. */
const LAST_EVENTS = 12;
const GOAL_EVENTS = 500;
/** Longest pause after a trouble that found no target. */
const MISSED_SECONDS = 0.5;

interface Event {
  run: number;
  seed: number;
  at: string;
  trouble: string;
  hit: string;
  seconds: number;
}

const { values } = parseArgs({
  options: {
    hours: { type: "string" },
    local: { type: "boolean", default: false },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    out: { type: "string" },
  },
});
const [hours, seed] = [Number(values.hours), Number(values.seed)];
if (!(hours > 0) || !Number.isInteger(seed)) {
  process.stderr.write("usage: npm run test:chaos -- --hours H [--local] [--seed WHOLE_NUMBER] [--out FOLDER]\n");
  process.exit(2);
}

lookForTools(values.local ? "test:chaos -- --local" : "test:chaos");
const say = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());

const world: World = await (values.local ? LocalWorld : NodeWorld).start(say);
const events: Event[] = [];
const findings: string[] = [];
const counts: Record<string, number> = {};
const started = new Date();
const elapsedHours = () => (Date.now() - started.getTime()) / 3_600_000;
say(`seed ${seed}, ${hours} hours`);
let runs = 0;
try {
  while (elapsedHours() < hours && !interrupted.signal.aborted) {
    if (!(await oneRun(runs, seed + runs))) break;
    runs++;
  }
} finally {
  await world.stop(findings.length > 0).catch((error: Error) => findings.push(`at the end: ${error.message}`));
}
const result = summary();
print("chaos", result);
say(`result: ${await save("chaos", result, started)}`);
for (const finding of findings) say(`FOUND ${finding}`);
process.exit(findings.length > 0 ? 1 : 0);

/** @returns false if the run did not end, so that nothing can follow it */
async function oneRun(run: number, runSeed: number): Promise<boolean> {
  const { troubles, ended } = await world.begin(runSeed);
  const over = new AbortController();
  const failed: string[] = [];
  const end = ended.catch((error: Error) => void failed.push(error.message)).finally(() => over.abort());
  const pause = (seconds: number) =>
    sleep(seconds * 1000, undefined, { signal: AbortSignal.any([over.signal, interrupted.signal]) }).then(
      () => true,
      () => false,
    );
  const begun = performance.now();
  const under = new Set<Promise<void>>();
  let missed = false;
  for (const { waitSeconds, trouble, random } of schedule(troubles, runSeed, world.gapSeconds)) {
    const isPeace = performance.now() - begun > world.strikeSeconds * 1000 || elapsedHours() >= hours;
    if (isPeace || !(await pause(missed ? Math.min(waitSeconds, MISSED_SECONDS) : waitSeconds))) break;
    while (under.size >= world.atOnce) await Promise.race(under);
    if (over.signal.aborted) break;
    const since = performance.now();
    const strike = trouble
      .strike(random)
      .then((hit) => {
        missed = hit === undefined;
        if (hit !== undefined) note({ run, seed: runSeed, trouble: trouble.name, hit, since });
      })
      .catch((error: Error) => void failed.push(`${trouble.name}: ${error.message}`))
      .then(() => void under.delete(strike));
    under.add(strike);
  }
  await Promise.all(under);
  const calm = await pause(world.calmSeconds);
  if (interrupted.signal.aborted) {
    // Unchecked runs do not count.
    events.splice(0, events.length, ...events.filter((event) => event.run !== run));
    return false;
  }
  if (calm) failed.push(`it did not end within ${world.calmSeconds} s after the last trouble`);
  const hung = !over.signal.aborted;
  if (!hung) {
    await end;
    const checked = await world.check();
    failed.push(...checked.findings);
    for (const [name, count] of Object.entries(checked.counts)) counts[name] = (counts[name] ?? 0) + count;
    say(`run ${run} (seed ${runSeed}): ${JSON.stringify(checked.counts)}`);
  }
  for (const finding of failed) findings.push(`run ${run} (seed ${runSeed}): ${finding}`);
  if (failed.length > 0) {
    for (const { at, trouble, hit } of events.slice(-LAST_EVENTS)) say(`  before: ${at} ${trouble}: ${hit}`);
    for (const finding of failed) say(`FOUND in run ${run}, --seed ${runSeed}: ${finding}`);
  }
  return !hung;
}

function note({ since, ...event }: Omit<Event, "at" | "seconds"> & { since: number }): void {
  const seconds = Math.round((performance.now() - since) / 100) / 10;
  events.push({ ...event, at: new Date().toISOString(), seconds });
  say(`${event.trouble}: ${event.hit} (${seconds} s)`);
}

function summary(): BenchResult {
  const kinds = [...new Set(events.map(({ trouble }) => trouble))].sort();
  const [doubled, found] = [counts.doubled ?? 0, findings.length];
  return {
    part: values.local ? "local" : "node",
    folder: values.out,
    method: `${elapsedHours().toFixed(2)} hours, seed ${seed}: ${runs} small runs one after another under random troubles, each checked at its end`,
    rows: kinds.map((trouble) => ({ trouble, events: events.filter((event) => event.trouble === trouble).length })),
    goals: [
      { what: "events", goal: `>= ${GOAL_EVENTS}`, measured: String(events.length), met: events.length >= GOAL_EVENTS },
      { what: "samples trained on twice", goal: "0", measured: String(doubled), met: doubled === 0 },
      { what: "findings", goal: "0", measured: String(found), met: found === 0 },
    ],
    raw: { seed, hours: elapsedHours(), runs, counts, findings, events },
  };
}
