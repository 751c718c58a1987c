/**
 * Runs test files: all of `npm test`, or those that are named.
 *
 *     node test/run.ts [FILE or PATTERN …]
 *
 * --twice: runs each file with a failed test once more, alone; only a second failure counts.
 * --strict: a test that is skipped for a reason that skips.ts does not allow is a failure.
 * --required: ends with 2 before any test if a program that the files need cannot be made.
 * --verbose: prints each file's output.
 * --force-exit: a file's process ends after its last test, although something still runs in it.
 * --busy N, --waiting N: how many processes run at once: those that compute, and those that mostly wait (the files of test/). With more
 * processes, tests would miss their deadlines.
 * --seconds N: limit for one test.
 *
 * Files that start nothing share a process. Programs that files need are made beside the others, which run first. If LONGRUN_TEST_RECORD
 * names a file, a line of JSON with the second tries is appended to it. Exit status: 0, 1 failures, 2 bad arguments.
 */
import { appendFileSync, globSync, statSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { needsOf, startsNothing, testFiles } from "./runner/files.ts";
import { ROOT } from "./runner/imports.ts";
import { Needs } from "./runner/needs.ts";
import { runUnits, type Unit } from "./runner/pool.ts";
import { printFile, printSummary, type SecondTry } from "./runner/report.ts";
import { type FileResult, firstLine, resultOf, seedOf } from "./runner/results.ts";
import { REAL_TOKENIZERS } from "./tokenizers.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    twice: { type: "boolean", default: false },
    strict: { type: "boolean", default: false },
    required: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    "force-exit": { type: "boolean", default: false },
    busy: { type: "string", default: String(availableParallelism()) },
    waiting: { type: "string", default: String(2 * availableParallelism()) },
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
const files = asked.length > 0 ? asked : testFiles();
const start = performance.now();
const results = new Map<string, FileResult>();
const tokenizers = options.strict ? REAL_TOKENIZERS : (["qwen2.5"] as const);
const needs = new Needs(files, options.required, tokenizers, say);
if (options.required) {
  await needs.all();
  const [reason] = needs.failed.values();
  if (reason !== undefined) {
    process.stderr.write(`${reason}\n`);
    process.exit(2);
  }
}
await runAll(unitsOf(files));
const secondTries = options.twice ? await tryAgain() : [];
const reasons = printSummary([...results.values()], secondTries, (performance.now() - start) / 1000);
const notTested = needs.notTested();
if (notTested !== undefined) say(notTested);
if (options.strict)
  for (const reason of reasons) say(`failed: no test may be skipped because of: ${reason} (test/runner/skips.ts)`);
record();
const failed = [...results.values()].some(({ failures }) => failures.length > 0);
process.exit(failed || (options.strict && reasons.length > 0) ? 1 : 0);

/** Files that start nothing and need nothing come first, in one process; then the largest, which as a rule take longest. */
function unitsOf(all: string[]): Unit[] {
  const shared = all.filter((file) => startsNothing(file) && needsOf(file).length === 0);
  const size = (file: string) => statSync(join(ROOT, file)).size;
  const alone = (shared.length > 1 ? all.filter((file) => !shared.includes(file)) : all).toSorted(
    (a, b) => size(b) - size(a),
  );
  const units = [...(shared.length > 1 ? [shared] : []), ...alone.map((file) => [file])];
  // Files of test/ start learners and API servers, and mostly wait.
  const waits = (file: string) => file.startsWith("test/") || needsOf(file).includes("kube-apiserver");
  return units.map((unit) => ({
    files: unit,
    waits: unit.length === 1 && waits(unit[0]!),
    isReady: () => unit.every((file) => needs.areMade(file)),
  }));
}

function runAll(units: Unit[]): Promise<void> {
  const isShared = new Set(units.flatMap((unit) => (unit.files.length > 1 ? unit.files : [])));
  return runUnits(units, {
    busy: Number(options.busy),
    waiting: Number(options.waiting),
    testSeconds: Number(options.seconds),
    change: () => needs.change(),
    forceExit: options["force-exit"],
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
    await runAll([{ files: [file], waits: true, isReady: () => true }]);
    const passed = results.get(file)!.failures.length === 0;
    for (const failure of failures) {
      const [seed, why] = [seedOf(failure), firstLine(failure)];
      tries.push({ file, test: failure.test, seed, seconds, load, passed, why });
    }
  }
  return tries;
}

function record(): void {
  const path = process.env.LONGRUN_TEST_RECORD;
  if (path === undefined) return;
  appendFileSync(path, `${JSON.stringify({ secondTries })}\n`);
}
