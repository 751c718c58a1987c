/** Folds the events of a test file into its result. */
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";
import { ROOT } from "./imports.ts";

export interface Failure {
  /** Names of the suites and the test, from the outermost. */
  test: string;
  /** `path:line` from the project's root. */
  at: string;
  message: string;
}

export interface FileResult {
  file: string;
  seconds: number;
  tests: number;
  passed: number;
  failures: Failure[];
  /** {reason: names of the tests and suites} */
  skipped: Map<string, string[]>;
  /** What the file's process and tests printed. */
  output: string;
}

/** @param shared whether the file ran within together.ts, whose own test and suite of the file do not count */
export function resultOf(file: string, events: readonly TestEvent[], seconds: number, shared: boolean): FileResult {
  const result: FileResult = { file, seconds, tests: 0, passed: 0, failures: [], skipped: new Map(), output: "" };
  /** Tests that could not run because a hook of their suite failed, which is the failure. */
  const cancelled: Failure[] = [];
  /** Names by nesting of what runs now. */
  const names: string[] = [];
  let last = "none";
  for (const { type, data } of events) {
    if (type === "test:start") {
      names.length = data.nesting;
      names.push(data.name);
      if (!data.name.endsWith(file)) last = names.join(" > ");
    } else if (type === "test:stdout" || type === "test:stderr") result.output += data.message;
    else if (type === "test:diagnostic" && data.nesting > 0) result.output += `${data.message}\n`;
    else if (type === "test:pass" || type === "test:fail") {
      const isOwn = !shared || data.nesting > 1;
      const path = names.slice(shared ? 2 : 0, data.nesting).concat(isOwn ? data.name : []);
      const name = path.join(" > ") || file;
      const isTest = isOwn && data.details.type !== "suite";
      if (isTest) result.tests++;
      if (data.skip !== undefined && data.skip !== false) {
        const reason = data.skip === true || data.skip === "" ? "no reason given" : String(data.skip);
        result.skipped.set(reason, [...(result.skipped.get(reason) ?? []), name]);
      } else if (type === "test:pass") result.passed += isTest ? 1 : 0;
      else if (data.todo === undefined || data.todo === false) {
        const error = data.details.error as Error & { failureType?: string };
        if (error.failureType === "subtestsFailed") continue;
        const at = `${relative(ROOT, data.file ?? file)}:${data.line ?? 1}`;
        const failures = error.failureType === "cancelledByParent" ? cancelled : result.failures;
        const note = data.name.endsWith(file) ? `\nthe last test that started: ${last}` : "";
        failures.push({ test: name, at, message: `${inspect(error.cause ?? error)}${note}` });
      }
    }
  }
  if (result.failures.length === 0) result.failures.push(...cancelled);
  if (result.tests === 0 && result.failures.length === 0 && result.skipped.size === 0)
    result.failures.push({
      test: file,
      at: file,
      message: "the file's process ended before a test of it, or it has none",
    });
  return result;
}

/** Returns the seed that a failed property test names, or undefined. */
export function seedOf({ message }: Failure): string | undefined {
  return /\bseed["']?[:=]?\s*(-?\d+)/i.exec(message)?.[1];
}

export function firstLine({ message }: Failure): string {
  return message.split("\n", 1)[0]!.slice(0, 300);
}
