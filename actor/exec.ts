/**
 * Runs one program in the sandbox that actors use and prints one JSON object.
 *
 *     node actor/exec.ts --task DIR (or --task-dir) --program FILE --python VENV [--nonce HEX] [--limits JSON] [--out DIR]
 *         [--isolation namespaces|landlock|none] [--allow-no-isolation] [--cpus 0,1] [--seed N] [--scratch DIR]
 *
 * Exit status: 0 however the program ended, 1 if the sandbox could not run it, 2 for bad arguments.
 */
import { rmSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makeFolder } from "../proto/folders.ts";
import { ISOLATION_LEVELS, type IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import { execute } from "./execution.ts";
import { startIsolated } from "./isolation.ts";
import { describeIsolation } from "./layers.ts";
import { parseLimits } from "./limits.ts";
import { findPublicData } from "./tasks.ts";

const options = {
  task: { type: "string" },
  "task-dir": { type: "string" },
  scratch: { type: "string" },
  program: { type: "string" },
  python: { type: "string" },
  nonce: { type: "string", default: "" },
  limits: { type: "string", default: "{}" },
  out: { type: "string" },
  seed: { type: "string", default: "0" },
  cpus: { type: "string" },
  isolation: { type: "string" },
  "allow-no-isolation": { type: "boolean", default: false },
} as const;

export function parseExecArguments(args: string[]) {
  let values: ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];
  try {
    values = parseArgs({ args, options }).values;
  } catch (cause) {
    throw new ActorError("arguments", (cause as Error).message.split(". ")[0]!, cause);
  }
  values.task ??= values["task-dir"];
  for (const name of ["task", "program", "python"] as const)
    if (!values[name]) throw new ActorError("arguments", `--${name} is missing`);
  if (values.nonce !== "" && !/^[0-9a-f]{32}$/.test(values.nonce!))
    throw new ActorError("arguments", "--nonce must be 32 lower-case hexadecimal digits");
  let limits: unknown;
  try {
    limits = JSON.parse(values.limits!);
  } catch (cause) {
    throw new ActorError("arguments", `--limits is not JSON: ${(cause as Error).message}`, cause);
  }
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new ActorError("arguments", `--seed is ${values.seed}, must be a whole number >= 0`);
  return {
    task: values.task!,
    program: values.program!,
    python: pythonOf(values.python!),
    nonce: values.nonce!,
    limits: parseLimits(limits),
    seed,
    out: values.out,
    scratch: values.scratch ?? tmpdir(),
    cpus: parseCpus(values.cpus),
    level: parseLevel(values.isolation),
    allowNoIsolation: values["allow-no-isolation"]!,
  };
}

/** Returns the interpreter of a virtual environment. A path to an interpreter is returned unchanged. */
export function pythonOf(path: string): string {
  return /(^|\/)python[\d.]*$/.test(path) ? resolve(path) : resolve(path, "bin", "python");
}

/** `0,2-3` -> [0, 2, 3]. Throws ActorError `arguments`. */
export function parseCpus(list: string | undefined): number[] | undefined {
  return parseNumbers("cpus", list);
}

/** @param option the command-line option, for error messages */
export function parseNumbers(option: string, list: string | undefined): number[] | undefined {
  if (list === undefined || list === "") return undefined;
  const numbers = list.split(",").flatMap((part) => {
    const range = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim());
    const first = Number(range?.[1]);
    const last = Number(range?.[2] ?? first);
    if (!range || last < first)
      throw new ActorError("arguments", `--${option}: "${part}" is not a number or a range such as 2-3`);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  return [...new Set(numbers)];
}

export function parseLevel(level: string | undefined): IsolationLevel | undefined {
  if (level === undefined || ISOLATION_LEVELS.includes(level as IsolationLevel))
    return level as IsolationLevel | undefined;
  throw new ActorError("arguments", `--isolation: is ${level}, must be one of ${ISOLATION_LEVELS.join(", ")}`);
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
      level: parsed.level,
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
