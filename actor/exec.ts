/**
 * `node actor/exec.ts`: runs one program in the sandbox that actors use and prints one JSON object.
 *
 * Exit status: 0 however the program ended, 1 if the sandbox could not run it, 2 for bad arguments.
 */
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parse } from "../proto/command-line.ts";
import { makeFolder } from "../proto/folders.ts";
import { ISOLATION_LEVELS, type IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import { execute } from "./execution.ts";
import { startIsolated } from "./isolation.ts";
import { describeIsolation } from "./layers.ts";
import { parseLimits } from "./limits.ts";
import { findPublicData } from "./tasks.ts";

const OPTIONS = {
  "task <DIR>": { help: "task folder, or a folder with the public data of one task", required: "a task folder" },
  "program <FILE>": { help: "Python file", required: "a Python file" },
  "python <VENV>": { help: "virtual environment or interpreter", required: "a virtual environment", as: pythonOf },
  "nonce <HEX>": { help: "replaces the placeholder of markers", default: "", as: nonceOf },
  "limits <JSON>": { help: "limits of the execution that are not the default", default: "{}", as: limitsOf },
  "out <DIR>": "folder for submission.csv",
  "seed <N>": { help: "of the program's random numbers", default: "0", as: seedOf },
  "cpus <LIST>": { help: "such as 0,2-3 (default: all)", as: parseCpus },
  "isolation <LEVEL>": { help: ISOLATION_LEVELS.join(", "), as: parseLevel },
  "allow-no-isolation": "run the program without isolation where the machine allows none",
  "scratch <DIR>": { help: "folder for the sandbox", default: tmpdir() },
} as const;

export const parseExecArguments = (args: string[]) => parse({ name: "actor/exec.ts", options: OPTIONS }, args).values;

function nonceOf(text: string, option: string): string {
  if (text === "" || /^[0-9a-f]{32}$/.test(text)) return text;
  throw new ActorError("arguments", `${option} must be 32 lower-case hexadecimal digits`);
}

function limitsOf(text: string, option: string) {
  let limits: unknown;
  try {
    limits = JSON.parse(text);
  } catch (cause) {
    throw new ActorError("arguments", `${option} is not JSON: ${(cause as Error).message}`, cause);
  }
  return parseLimits(limits);
}

function seedOf(text: string, option: string): number {
  const seed = Number(text);
  if (Number.isSafeInteger(seed) && seed >= 0) return seed;
  throw new ActorError("arguments", `${option} is ${text}, must be a whole number >= 0`);
}

/** Returns the interpreter of a virtual environment. A path to an interpreter is returned unchanged. */
export function pythonOf(path: string): string {
  return /(^|\/)python[\d.]*$/.test(path) ? resolve(path) : resolve(path, "bin", "python");
}

/** `0,2-3` -> [0, 2, 3]; undefined for an empty list. @throws ActorError `arguments` */
export function parseCpus(list: string, option: string): number[] | undefined {
  if (list === "") return undefined;
  const numbers = list.split(",").flatMap((part) => {
    const range = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim());
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? first);
    if (!range || last < first)
      throw new ActorError("arguments", `${option}: "${part}" is not a number or a range such as 2-3`);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  return [...new Set(numbers)];
}

export function parseLevel(level: string, option: string): IsolationLevel {
  const known = ISOLATION_LEVELS.find((name) => name === level);
  if (known) return known;
  throw new ActorError("arguments", `${option}: is ${level}, must be one of ${ISOLATION_LEVELS.join(", ")}`);
}

async function execOnce(args: string[]): Promise<Record<string, unknown>> {
  const parsed = parseExecArguments(args);
  const inputs = await findPublicData(parsed.task);
  const task = Object.keys(inputs)[0]!;
  const program = await readFile(parsed.program).catch((cause) => {
    throw new ActorError("arguments", `--program: cannot read ${parsed.program} (${cause.code})`, cause);
  });
  const directory = await mkdtemp(join(parsed.scratch, "longrun-exec-"));
  const cleanUp = () => rmSync(directory, { recursive: true, force: true });
  const interrupted = () => process.exit(130);
  process.on("exit", cleanUp).on("SIGINT", interrupted).on("SIGTERM", interrupted);
  try {
    const { sandbox } = await startIsolated({
      python: parsed.python,
      level: parsed.isolation,
      allowNoIsolation: parsed.allowNoIsolation,
      inputs,
      space: join(directory, "space"),
      cpus: parsed.cpus,
    });
    try {
      const { nonce, limits, seed } = parsed;
      const result = await execute(sandbox, { task, program, nonce, limits, seed });
      const { submission, terminalOutput, markers, ...rest } = result;
      let path: string | null = null;
      if (submission && parsed.out) {
        makeFolder(parsed.out, "--out");
        path = join(resolve(parsed.out), "submission.csv");
        await writeFile(path, submission);
      }
      return {
        ...rest,
        markers: markers.map(({ name }) => name),
        markersSeen: markers,
        output: terminalOutput.toString("utf8"),
        submission: path,
        submissionBytes: submission?.length ?? null,
        isolationLevel: sandbox.info.level,
        isolation: describeIsolation(sandbox.info),
      };
    } finally {
      await sandbox.stop();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
    process.off("exit", cleanUp).off("SIGINT", interrupted).off("SIGTERM", interrupted);
  }
}

if (import.meta.main) {
  // The sandbox ends with this process; only its directory would stay. (No effect without an IPC channel.)
  process.on("disconnect", () => process.exit(1));
  if (process.connected === false) process.exit(1); // the parent ended before the listener was added
  process.channel?.unref(); // a referenced channel would keep this process alive
  try {
    process.stdout.write(`${JSON.stringify(await execOnce(process.argv.slice(2)))}\n`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = ["arguments", "input"].includes((error as ActorError).code) ? 2 : 1;
  }
}
