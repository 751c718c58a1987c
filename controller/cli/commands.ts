/** The commands of `longrun`, each with its function. A command itself loads the modules that only it needs, such as the gRPC channel. */
import { readFileSync } from "node:fs";
import { asksForHelp } from "../../proto/command-help.ts";
import { bind, type Command } from "../../proto/command-line.ts";
import { BUNDLED, isTaskName } from "../bundled.ts";
import { ControllerError } from "../errors.ts";
import { executeProgram } from "../local/exec.ts";
import { prepareBundledTask, preparePython } from "../local/inputs/prepare.ts";
import { listenForInterrupts } from "../local/interrupt.ts";
import { CERTIFICATES, EVALUATE, EXEC, PREPARE, RUN, SOLVE } from "../local/options.ts";
import { becomePart } from "../part-process.ts";
import type { Parts } from "../parts.ts";
import { readInput } from "../read-input.ts";
import { CONTROLLER, DEBUG, RELEASE_RUNS, SMOKE_TEST } from "./cluster-options.ts";
import { COMPLETION, completionScript } from "./completion.ts";
import type { Runnable } from "./dispatch.ts";
import { BEST, SAMPLES, VALIDATE } from "./run-folder-options.ts";

/** The commands that are programs of other parts, in the order of the help, and their names among the parts. */
const PROGRAMS: Record<string, keyof Parts> = { logprobs: "logProbs" };
/** Tables of the other parts' commands, by `npm run generate`. */
const PART_COMMANDS: readonly Command[] = JSON.parse(
  readFileSync(new URL("./part-commands.generated.json", import.meta.url), "utf8"),
);

export function commandsOf(parts: Parts): Runnable[] {
  const around = { parts, stdout: process.stdout, stderr: process.stderr, env: process.env, now: () => new Date() };
  const own: Runnable[] = [
    bind(RUN, async (options, file) => (await import("../local/run.ts")).runLocally(file, options, around)),
    bind(EVALUATE, async ({ table, csv, output, ...options }, file, ...files) => {
      options.out ??= output;
      if (table !== undefined) {
        const out = options.out === undefined ? [] : ["--out", options.out];
        const how = [...(csv ? ["--csv"] : []), ...out, ...(options.json ? ["--json"] : [])];
        return becomePart(parts.evaluationTable, [
          ...how,
          "--",
          table,
          ...(file === undefined ? [] : [file]),
          ...files,
        ]);
      }
      if (files.length > 0) throw new ControllerError("input", `give one FILE, not ${1 + files.length}`);
      const { evaluateLocally } = await import("../local/evaluation/evaluate.ts");
      return evaluateLocally(file, options, around);
    }),
    bind(SOLVE, async (options) => (await import("../local/solve/solve.ts")).solveLocally(options, around)),
    bind(CONTROLLER, async (options) => {
      const { runController } = await import("./controller-command.ts");
      return stoppable((signal) => runController(options, signal));
    }),
    bind(SMOKE_TEST, async ({ kubeconfig, namespace, timeout: timeoutSeconds }, source) => {
      const { clusterClient } = await import("./controller-command.ts");
      const { smokeTest } = await import("./smoke-test.ts");
      const given = { manifest: readInput(source), source, namespace, timeoutSeconds };
      return interruptible((signal) => smokeTest({ client: clusterClient(kubeconfig), ...given, say, signal }));
    }),
    bind(RELEASE_RUNS, async ({ kubeconfig, namespace: namespaces, controller, quiet: quietSeconds }) => {
      const { clusterClient } = await import("./controller-command.ts");
      const { releaseRuns } = await import("./release-runs.ts");
      const given = { namespaces, controller, quietSeconds };
      return interruptible((signal) => releaseRuns({ client: clusterClient(kubeconfig), ...given, say, signal }));
    }),
    bind(EXEC, (options, file) => interruptible((signal) => executeProgram(file, options, parts, signal))),
    bind(BEST, async (options, run) => {
      const { printBestHere } = await import("./best-here.ts");
      await printBestHere(run, options, process.stdout);
    }),
    bind(SAMPLES, async (options, run) =>
      (await import("./samples.ts")).showSamples(run, options, parts, process.stdout),
    ),
    bind(VALIDATE, async (options, ...files) => (await import("./validate.ts")).validate(files, options, parts, say)),
    bind(DEBUG, async (options, run) => {
      const { writeBundle } = await import("../debug/bundle.ts");
      say(await writeBundle(run, options, new Date()));
    }),
    bind(PREPARE, async ({ python, packages }, ...tasks) => {
      const unknown = tasks.find((task) => !isTaskName(task));
      const known = BUNDLED.tasks.join(", ");
      if (unknown !== undefined)
        throw new ControllerError("input", `${unknown}: there is no bundled task of this name; there are ${known}`);
      await interruptible(async (signal) => {
        const progress = (text: string): void => void process.stderr.write(`${text}\n`);
        const steps = { parts, signal, env: process.env, step: progress, progress };
        const environment = await preparePython(python, packages, steps);
        for (const task of tasks) say(await prepareBundledTask(task, environment.python, steps));
      });
    }),
    bind(CERTIFICATES, async (options) => (await import("../local/generators.ts")).writeGeneratorCertificates(options)),
    bind(
      COMPLETION,
      (_, shell) =>
        void process.stdout.write(
          completionScript(
            shell,
            all.map(({ command }) => command),
          ),
        ),
    ),
  ];
  const programs = PART_COMMANDS.map((command): Runnable => {
    const name = command.name.replace("longrun ", "");
    const program = parts[PROGRAMS[name] ?? (name as keyof Parts)];
    const run = async (args: readonly string[]) => becomePart(program, await withPython(name, args, parts));
    return { command, run, isProgram: true };
  });
  const all = [...own, ...programs];
  return all;
}

/** Adds `--python` with the programs' environment to `longrun task generate`, whose baselines need its packages. */
async function withPython(name: string, args: readonly string[], parts: Parts): Promise<string[]> {
  const isGiven = args.some((arg) => /^--python(=|$)/.test(arg));
  if (name !== "task" || args[0] !== "generate" || isGiven || asksForHelp(args)) return [...args];
  const progress = (text: string): void => void process.stderr.write(`${text}\n`);
  return interruptible(async (signal) => {
    const { python } = await preparePython(undefined, undefined, {
      parts,
      signal,
      env: process.env,
      step: progress,
      progress,
    });
    return [...args, "--python", python];
  });
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const interruption = listenForInterrupts(() => {});
  try {
    return await work(interruption.signal);
  } finally {
    interruption.dispose();
  }
}

/** Runs a server until SIGTERM or SIGINT. */
async function stoppable(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
  return work(stopping.signal);
}
