/** Runs test files in processes, several at once, and hands over what each file's tests did. */
import { join } from "node:path";
import { run } from "node:test";
import type { TestEvent } from "node:test/reporters";
import { pathToFileURL } from "node:url";
import { ROOT } from "./imports.ts";

const TOGETHER = join(import.meta.dirname, "together.ts");
const FILE_LIMIT = pathToFileURL(join(import.meta.dirname, "../file-limit.ts")).href;
/** Seconds that a file may need beyond its longest test, so that a report names a test that hangs. */
const FILE_MARGIN_SECONDS = 20;
/** Limit for a shared process, in limits of one test. Its files take 100 s on two busy cores. */
const SHARED_LIMITS = 3;

/** The test files of one process. */
export interface Unit {
  /** Paths from the project's root. Two and more share the process. */
  files: string[];
  /** Whether its tests mostly wait. */
  waits: boolean;
  /** Whether what the files need has been made. */
  isReady(): boolean;
}

interface PoolOptions {
  /** Number of processes at once whose tests compute. */
  busy: number;
  /** Number of processes at once whose tests mostly wait. */
  waiting: number;
  /** Limit for one test. */
  testSeconds: number;
  /** Whether a process ends after its last test although something still runs in it. */
  forceExit: boolean;
  /** Is called at the end of each file. */
  onFile(file: string, events: TestEvent[], seconds: number): void;
  /** Settles when a unit may have become ready. */
  change(): Promise<unknown>;
}

/** Runs all units. Starts the first one that is ready whenever a process ends. */
export async function runUnits(units: readonly Unit[], options: PoolOptions): Promise<void> {
  const waiting = [...units];
  const running = new Set<Promise<void>>();
  /** Number of running processes by whether they wait. */
  const count = { true: 0, false: 0 };
  const most = { true: options.waiting, false: options.busy };
  const mayStart = (unit: Unit) => count[`${unit.waits}`] < most[`${unit.waits}`] && unit.isReady();
  while (waiting.length > 0 || running.size > 0) {
    const next = waiting.findIndex(mayStart);
    if (next < 0) {
      await Promise.race([...running, ...(waiting.length > 0 ? [options.change()] : [])]);
      continue;
    }
    const [unit] = waiting.splice(next, 1);
    count[`${unit!.waits}`]++;
    const done: Promise<void> = runUnit(unit!, options).finally(() => {
      count[`${unit!.waits}`]--;
      running.delete(done);
    });
    running.add(done);
  }
}

async function runUnit({ files }: Unit, { testSeconds, forceExit, onFile }: PoolOptions): Promise<void> {
  const [only] = files.length === 1 ? files : [];
  let since = performance.now();
  let events: TestEvent[] = [];
  const end = (file: string) => {
    const now = performance.now();
    onFile(file, events, (now - since) / 1000);
    events = [];
    since = now;
  };
  const left = new Set(files);
  const limit = (only === undefined ? SHARED_LIMITS : 1) * testSeconds + FILE_MARGIN_SECONDS;
  const stream = run({
    ...{ files: [only === undefined ? TOGETHER : join(ROOT, only)], argv: only === undefined ? files : [] },
    ...{ cwd: ROOT, timeout: testSeconds * 1000, forceExit, execArgv: [`--import=${FILE_LIMIT}?seconds=${limit}`] },
  });
  for await (const event of stream as AsyncIterable<TestEvent>) {
    events.push(event);
    const { type, data } = event as { type: string; data: { nesting?: number; name?: string } };
    const isEnd = (type === "test:pass" || type === "test:fail") && data.nesting === 0;
    if (only === undefined && isEnd && left.delete(data.name!)) end(data.name!);
  }
  if (only !== undefined) return end(only);
  // What is left was not run, because the process ended.
  for (const file of left) end(file);
}
