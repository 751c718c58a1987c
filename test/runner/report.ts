/** Prints what tests did: a line for each file as it ends, and at the end what failed, what was skipped and what was tried again. */
import type { FileResult } from "./results.ts";
import { isAllowed } from "./skips.ts";

/** Number of the slowest files that are named. */
const SLOWEST = 5;

/** A file that failed and was run again. */
export interface SecondTry {
  file: string;
  test: string;
  /** Of a property test. */
  seed: string | undefined;
  /** How long the file took when it failed. */
  seconds: number;
  /** The machine's load over the last minute when it failed. */
  load: number;
  passed: boolean;
  /** First line of the failure. */
  why: string;
}

const indent = (text: string) => text.replace(/^(?=.)/gm, "    ");
const say = (line: string) => process.stdout.write(`${line}\n`);
const seconds = (value: number) => `${value.toFixed(1)} s`;

/** Prints a file's line, and its failures. */
export function printFile(result: FileResult, { verbose }: { verbose: boolean }): void {
  const { file, tests, passed, failures, skipped, output } = result;
  const left = [...skipped.values()].flat().length;
  const what = [
    failures.length > 0 ? `${failures.length} failed of ${tests}` : `${tests} tests`,
    ...(left > 0 ? [`${left} skipped`] : []),
    seconds(result.seconds),
  ];
  const mark = failures.length > 0 ? "✖" : passed > 0 ? "✔" : "–"; // nothing of it could run
  say(`${mark} ${file}  ${what.join(", ")}`);
  if ((verbose || failures.length > 0) && output.trim() !== "") say(indent(output.trimEnd()));
  for (const { test, at, message } of failures) say(indent(`✖ ${test} (${at})\n${indent(message)}`));
}

/** Prints the summary of all files. Returns the reasons of skipped tests that are not allowed where `strict`. */
export function printSummary(
  results: readonly FileResult[],
  secondTries: readonly SecondTry[],
  wall: number,
): string[] {
  const slowest = results.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  say(`\nslowest files: ${slowest.map((it) => `${it.file} ${seconds(it.seconds)}`).join(", ")}`);
  const skips = new Map<string, string[]>();
  for (const { file, skipped } of results)
    for (const [reason, names] of skipped) skips.set(reason, [...(skips.get(reason) ?? []), ...names.map(() => file)]);
  for (const [reason, files] of skips) say(`skipped: ${files.length} in ${[...new Set(files)].join(", ")}: ${reason}`);
  for (const line of secondTries.map(describeTry)) say(`second try: ${line}`);
  const failed = results.flatMap(({ file, failures }) => failures.map((failure) => ({ file, ...failure })));
  for (const { test, at } of failed) say(`failed: ${test} (${at})`);
  const sum = (of: (result: FileResult) => number) => results.reduce((total, result) => total + of(result), 0);
  const [tests, passed] = [sum((it) => it.tests), sum((it) => it.passed)];
  say(
    `${tests} tests of ${results.length} files: ${passed} passed, ${failed.length} failed, ${[...skips.values()].flat().length} skipped; ${seconds(wall)}`,
  );
  return [...skips.keys()].filter((reason) => !isAllowed(reason));
}

export function describeTry({ file, test, seed, load, passed, why, ...of }: SecondTry): string {
  const then = passed ? "passed" : "failed again";
  const when = `${seed === undefined ? "" : `seed ${seed}, `}${seconds(of.seconds)}, load ${load.toFixed(1)}`;
  return `${file}: ${test}; ${when}; ${then}; at first: ${why}`;
}
