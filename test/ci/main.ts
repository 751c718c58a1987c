/**
 * Runs the lanes of `lanes.ts`: `node test/ci/main.ts [LANE …]`. Lanes of one core run side by side; the output of such a lane is printed
 * when it ends. At the end: what each lane took, every second try, and what failed. Exit status: 0, or 1 if a lane failed, a test was
 * skipped that could have run, or more than MOST_SECOND_TRIES files had to be tried again.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { describeTry, type SecondTry } from "../runner/report.ts";
import { LANES, type Lane } from "./lanes.ts";

/** Limit for everything in seconds. A command that still runs then is stopped: a hang must not hide what the other lanes found. */
const LIMIT_SECONDS = 4800;
/** From SIGTERM to SIGKILL. */
const GRACE_SECONDS = 60;
/**
 * More files that need a second try fail the whole: the suite is then too unreliable to judge a change. Files, not tests: the tests of a
 * file share a control plane, and fail together if that does.
 */
const MOST_SECOND_TRIES = 3;
/** Niceness of a lane that gives way. */
const NICE = 10;
/** A line is printed so often while lanes run. */
const HEARTBEAT_SECONDS = 60;

const folder = mkdtempSync(join(tmpdir(), "longrun-ci-"));
const say = (line: string) => process.stdout.write(`${line}\n`);
/** Processors of the machine that CI's times are for. */
const CORES = 2;

const start = performance.now();
const elapsed = () => (performance.now() - start) / 1000;
const running = new Set<Promise<void>>();
const names = new Set<string>();
/** Each ends a running lane with all its processes. */
const ends = new Set<(signal: NodeJS.Signals) => void>();
const failed: string[] = [];
const table: string[] = [];
const secondTries: SecondTry[] = [];
let cores = 0;

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !LANES.some((lane) => lane.name === name));
if (unknown !== undefined) {
  process.stderr.write(`no lane "${unknown}"; there are ${LANES.map(({ name }) => `"${name}"`).join(", ")}\n`);
  process.exit(2);
}
for (const [signal, status] of [["SIGINT", 130] as const, ["SIGTERM", 143] as const])
  process.once(signal, () => {
    for (const end of ends) end("SIGTERM"); // lanes have process groups of their own, which a Ctrl-C does not reach
    process.exit(status);
  });
const heartbeat = setInterval(
  () => say(`… ${elapsed().toFixed(0)} s: ${[...names].join(" and ")}`),
  HEARTBEAT_SECONDS * 1000,
);
const waiting = LANES.filter(({ name }) => asked.length === 0 || asked.includes(name));
while (waiting.length > 0 || running.size > 0) {
  const next = waiting.findIndex(mayStart);
  if (next < 0) {
    await Promise.race(running);
    continue;
  }
  const done: Promise<void> = runLane(waiting.splice(next, 1)[0]!).finally(() => running.delete(done));
  running.add(done);
}
clearInterval(heartbeat);
rmSync(folder, { recursive: true, force: true });

say(`\n${table.join("\n")}`);
for (const line of secondTries.map(describeTry)) say(`second try: ${line}`);
const triedAgain = new Set(secondTries.map(({ file }) => file)).size;
if (triedAgain > MOST_SECOND_TRIES) failed.push(`${triedAgain} files needed a second try; ${MOST_SECOND_TRIES} may`);
say(`${elapsed().toFixed(0)} s on ${availableParallelism()} cores`);
for (const reason of failed) say(`FAILED: ${reason}`);
process.exit(failed.length > 0 ? 1 : 0);

/** Returns whether a lane has its cores, and no lane runs that it must be apart from. A lane of two cores lets none overtake it. */
function mayStart(lane: Lane, index: number): boolean {
  if (waiting.slice(0, index).some((earlier) => earlier.cores === 2)) return false;
  const beside = LANES.filter(({ name }) => names.has(name));
  const areApart = beside.every(
    (other) => !other.apartFrom?.includes(lane.name) && !lane.apartFrom?.includes(other.name),
  );
  return cores + lane.cores <= CORES && areApart;
}

async function runLane(lane: Lane): Promise<void> {
  const { name } = lane;
  const reason = lane.without?.();
  if (reason !== undefined) return void table.push(`${name}: not run: it ${reason}`);
  cores += lane.cores;
  names.add(name);
  say(`--- ${name}: started`);
  const since = elapsed();
  const status = await tryLane(lane);
  const passed = status === 0 || (!lane.triesAgain && (await again(lane, since, status)));
  if (!passed) failed.push(name);
  table.push(`${(elapsed() - since).toFixed(0).padStart(6)} s  ${name}${passed ? "" : ": FAILED"}`);
  names.delete(name);
  cores -= lane.cores;
}

/** Runs a lane that failed as a whole once more. */
async function again(lane: Lane, since: number, status: number | string): Promise<boolean> {
  const { name: file } = lane;
  const [seconds, load] = [elapsed() - since, loadavg()[0]!];
  if (LIMIT_SECONDS - elapsed() < lane.seconds) {
    say(`--- ${file}: failed, and there is no time to try it again`);
    return false;
  }
  say(`--- ${file}: once more`);
  const passed = (await tryLane(lane)) === 0;
  const why = `it ended with ${status}`;
  secondTries.push({ file, test: "the whole lane", seed: undefined, seconds, load, passed, why });
  return passed;
}

/** Runs a lane's command, prints its output, and reads its record. @returns its exit status, signal or error */
async function tryLane({ name, command, env, cores: own, givesWay = false }: Lane): Promise<number | string> {
  const [log, record] = [join(folder, `${names.size}-${Date.now()}.log`), join(folder, `${name}.jsonl`)];
  const output = own === 2 ? "inherit" : openSync(log, "a");
  const [program, ...args] = command;
  const child = spawn(program!, args, {
    ...{ stdio: ["ignore", output, output], detached: true },
    env: { ...process.env, ...env, LONGRUN_TEST_RECORD: record },
  });
  if (givesWay && child.pid !== undefined) setPriority(child.pid, NICE);
  const kill = (signal: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, signal);
    } catch {
      // It has ended.
    }
  };
  ends.add(kill);
  const left = Math.max(1, LIMIT_SECONDS - elapsed()) * 1000;
  const timers = [
    setTimeout(() => kill("SIGTERM"), left),
    setTimeout(() => kill("SIGKILL"), left + GRACE_SECONDS * 1000),
  ];
  const status = await new Promise<number | string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(code ?? signal!));
  });
  for (const timer of timers) clearTimeout(timer);
  kill("SIGKILL"); // what it left behind
  ends.delete(kill);
  const printed = own === 2 ? [] : [readFileSync(log, "utf8").trimEnd(), `--- end of ${name}`];
  say([`--- ${name}: ended with ${status}`, ...printed].join("\n"));
  secondTries.push(...readTries(record));
  return status;
}

function readTries(record: string): SecondTry[] {
  try {
    const lines = readFileSync(record, "utf8").split("\n").filter(Boolean);
    rmSync(record);
    return lines.flatMap((line) => JSON.parse(line).secondTries);
  } catch {
    return []; // a lane without a record
  }
}
