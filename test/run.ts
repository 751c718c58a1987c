/**
 * Runs test files: all of `npm test`, or those that are named.
 *
 *     node test/run.ts [FILE or PATTERN …]
 *
 * --twice: runs each file with a failed test once more, alone; only a second failure counts.
 * --strict: a test that is skipped for a reason that skips.ts does not allow is a failure.
 * --required: ends with 2 before any test if a program that the files need cannot be made.
 * --verbose: prints each file's output.
 * --concurrency N, --seconds N: processes at once; limit for one test.
 *
 * Files that start nothing share a process. Programs that files need are made beside the others, which run first. If LONGRUN_TEST_RECORD
 * names a file, a line of JSON is appended to it: what was tried again, skipped and failed. Exit status: 0, 1 failures, 2 bad arguments.
 */
import { appendFileSync, globSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { ensurePythonEnvironment } from "../actor/python-env.ts";
import { makeBinaries, NPM_TEST, RELEASE } from "./cluster/binaries.ts";
import { type Need, needsOf, startsNothing, testFiles } from "./runner/files.ts";
import { ROOT } from "./runner/imports.ts";
import { runUnits, type Unit } from "./runner/pool.ts";
import { printFile, printSummary, type SecondTry } from "./runner/report.ts";
import { type FileResult, resultOf, seedOf } from "./runner/results.ts";
import { ensureTokenizer } from "./tokenizers.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    twice: { type: "boolean", default: false },
    strict: { type: "boolean", default: false },
    required: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    concurrency: { type: "string", default: String(availableParallelism() + 1) },
    seconds: { type: "string", default: "220" },
  },
});
const say = (line: string) => process.stdout.write(`${line}\n`);
// The tests and their child processes share compiled code.
process.env.NODE_COMPILE_CACHE ??= join(ROOT, "node_modules/.cache/node");
// API servers that live for seconds need not collect garbage as often as by default (100).
process.env.GOGC ??= "200";

const missing = positionals.find((pattern) => globSync(pattern).length === 0);
if (missing !== undefined) {
  process.stderr.write(`no test file ${missing}\n`);
  process.exit(2);
}
const asked = positionals.flatMap((pattern) => globSync(pattern).sort()).map((path) => relative(ROOT, resolve(path)));
const files = asked.length > 0 ? asked : inOrder(testFiles());
const start = performance.now();
const results = new Map<string, FileResult>();
const needs = startMaking();
if (options.required) {
  const [reason] = (await Promise.all(needs.promises.values())).filter((it) => it !== undefined);
  if (reason !== undefined) {
    process.stderr.write(`${reason}\n`);
    process.exit(2);
  }
}
await runAll(unitsOf(files), Number(options.concurrency));
const secondTries = options.twice ? await tryAgain() : [];
const reasons = printSummary([...results.values()], secondTries, (performance.now() - start) / 1000);
if (needs.failed.size > 0) say(notMade());
if (options.strict)
  for (const reason of reasons) say(`failed: no test may be skipped because of: ${reason} (test/runner/skips.ts)`);
record(reasons);
const failed = [...results.values()].some(({ failures }) => failures.length > 0);
process.exit(failed || (options.strict && reasons.length > 0) ? 1 : 0);

/** Returns files of `test/`, which start whole learners and API servers and wait a lot, each followed by some that use the cores meanwhile. */
function inOrder(all: string[]): string[] {
  const isLong = (file: string) => file.startsWith("test/") && !startsNothing(file);
  const [long, short] = [all.filter(isLong), all.filter((file) => !isLong(file))];
  const each = Math.ceil(short.length / long.length);
  return long.flatMap((file, i) => [file, ...short.slice(each * i, each * (i + 1))]);
}

/** Files that start nothing come first, in one process. */
function unitsOf(all: string[]): Unit[] {
  const shared = all.filter(startsNothing);
  const units = shared.length > 1 ? [shared] : [];
  for (const file of all) if (units.length === 0 || !startsNothing(file)) units.push([file]);
  return units.map((unit) => {
    const needed = unit.flatMap(needsOf);
    return { files: unit, isReady: () => needed.every((need) => needs.settled.has(need)) };
  });
}

/** Begins to make what the files need, one thing after the other. */
function startMaking() {
  const needed = new Set(files.flatMap(needsOf));
  const settled = new Set<Need>();
  /** {need: why it was not made} */
  const failed = new Map<Need, string>();
  let changed = Promise.withResolvers<void>();
  const waiting = () => files.filter((file) => !results.has(file) && needsOf(file).some((need) => !settled.has(need)));
  const log = (line: string) => say(`… ${line}; ${waiting().length} test files wait`);
  const binaries = NPM_TEST.concat(options.required ? RELEASE : []).filter((name) => needed.has(name));
  const made = new Map<Need, Promise<unknown>>(makeBinaries(binaries, { log }));
  if (needed.has("tokenizer")) made.set("tokenizer", ensureTokenizer("qwen2.5"));
  if (needed.has("python")) made.set("python", ensurePythonEnvironment({ onProgress: log }));
  for (const need of needed) if (!made.has(need)) settled.add(need); // its tests name what is missing
  const promises = new Map<Need, Promise<string | undefined>>();
  for (const [need, promise] of made)
    promises.set(
      need,
      promise
        .then(
          () => undefined,
          (error: Error) => (failed.set(need, error.message), error.message),
        )
        .finally(() => {
          settled.add(need);
          changed.resolve();
          changed = Promise.withResolvers();
        }),
    );
  return { promises, settled, failed, change: () => changed.promise };
}

/** Returns a line with what was not tested. */
function notMade(): string {
  const without = files.filter((file) => needsOf(file).some((need) => needs.failed.has(need)));
  const [reason] = needs.failed.values();
  return `not tested without ${[...needs.failed.keys()].join(", ")}: tests of ${without.join(", ")}: ${reason}`;
}

function runAll(units: Unit[], concurrency: number): Promise<void> {
  const isShared = new Set(units.flatMap((unit) => (unit.files.length > 1 ? unit.files : [])));
  return runUnits(units, {
    ...{ concurrency, testSeconds: Number(options.seconds), change: needs.change },
    onFile(file, events, seconds) {
      const result = resultOf(file, events, seconds, isShared.has(file));
      results.set(file, result);
      printFile(result, { verbose: options.verbose });
    },
  });
}

/** Runs each file that failed once more, alone. */
async function tryAgain(): Promise<SecondTry[]> {
  const tries: SecondTry[] = [];
  for (const { file, failures, seconds } of [...results.values()].filter((it) => it.failures.length > 0)) {
    say(`--- once more: ${file}`);
    const load = loadavg()[0]!;
    await runAll([{ files: [file], isReady: () => true }], 1);
    const passed = results.get(file)!.failures.length === 0;
    for (const failure of failures)
      tries.push({ ...{ file, test: failure.test, seed: seedOf(failure) }, seconds, load, passed });
  }
  return tries;
}

function record(notAllowed: string[]): void {
  const path = process.env.LONGRUN_TEST_RECORD;
  if (path === undefined) return;
  appendFileSync(path, `${JSON.stringify({ secondTries, notAllowed })}\n`);
}
