/**
 * `npm test`: runs every test file, each in a process of its own.
 *
 *     node test/run.ts [FILE …]      only these
 *     node test/run.ts --twice       runs each file with a failed test once more, one at a time; only a second failure counts
 *
 * Three run at once; with a fourth, on two cores, tests would miss their deadlines. The files below `test/` start whole learners and API
 * servers and wait a lot: short files follow each of them and use the cores meanwhile.
 */
import { globSync } from "node:fs";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const ROOT = join(import.meta.dirname, "..");
const CONCURRENCY = 3;
/** Short files between two long ones; the others come last. */
const SHORT_EACH = 4;

// The tests and their child processes share compiled code.
process.env.NODE_COMPILE_CACHE ??= join(ROOT, "node_modules/.cache/node");
// API servers that live for seconds need not collect garbage as often as by default (100).
process.env.GOGC ??= "200";

const filesIn = (pattern: string) => globSync(`${pattern}/**/*.test.ts`, { cwd: ROOT }).sort();
const long = [...new Set(["test/faults", "test/controller", "test"].flatMap(filesIn))];
const short = filesIn("{actor,charts,controller,crds,learner,proto}");
const all = [
  ...long.flatMap((file, i) => [file, ...short.slice(SHORT_EACH * i, SHORT_EACH * (i + 1))]),
  ...short.slice(SHORT_EACH * long.length),
];
/** Limit for one test. It is below the limit of the file, so that the report names the test. */
const TEST_SECONDS = 220;
/** Module that ends each test file's process at the file's limit. */
const FILE_LIMIT = join(import.meta.dirname, "file-limit.ts");

const isTwice = process.argv.includes("--twice");
const asked = process.argv.slice(2).filter((argument) => argument !== "--twice");
const failed = await runFiles(asked.length > 0 ? asked : all.map((file) => join(ROOT, file)), CONCURRENCY);
if (failed.length > 0) process.exitCode = 1;
if (isTwice && failed.length > 0) {
  process.stdout.write(`--- once more: ${failed.map((file) => relative(ROOT, file)).join(" ")}\n`);
  process.exitCode = (await runFiles(failed, 1)).length > 0 ? 1 : 0;
}

/** Runs the tests of these files and prints their output. @returns the files in which a test failed */
async function runFiles(files: string[], concurrency: number): Promise<string[]> {
  const failed = new Set<string>();
  const tests = run({
    files,
    concurrency,
    cwd: ROOT,
    timeout: TEST_SECONDS * 1000,
    execArgv: [`--import=${FILE_LIMIT}`],
  });
  tests.on("test:fail", ({ todo, file, name }) => {
    if (todo === undefined || todo === false) failed.add(file ?? name);
  });
  await pipeline(tests.compose(spec), process.stdout, { end: false });
  return [...failed];
}
