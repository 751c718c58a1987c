/** The steps that a run and an evaluation on this machine share. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { TrainingRun } from "../../crds/trainingrun.ts";
import type { Address } from "../../proto/address.ts";
import { writeRunCertificates } from "../../proto/certificates.ts";
import { makeTemporaryFolder, removeLeftFolders } from "../../proto/temporary-folder.ts";
import type { ControllerError } from "../errors.ts";
import { checkFree, parseAddress } from "./address.ts";
import { layOutCustomTask, layOutPublicData, prepareBundledTask, preparePython, type Steps } from "./inputs/prepare.ts";
import { listenForInterrupts } from "./interrupt.ts";
import type { LocalOptions } from "./options.ts";
import { Backend, type BackendOptions } from "./processes/backend.ts";
import { releaseRunFolder } from "./run-folder.ts";
import type { Surroundings } from "./surroundings.ts";
import { Terminal } from "./terminal/terminal.ts";

export interface LocalCommand {
  terminal: Terminal;
  around: Surroundings;
  options: LocalOptions;
  steps: Steps;
  listen: Address;
  metricsListen: Address;
  /** Text that says how to continue the command after a stop. */
  canGoOn(how: string): void;
  /** Functions that are called at any end, in reverse order. */
  atEnd(step: () => void): void;
}

/** Folders and programs that executions need. */
interface Prepared {
  /** Folder that is removed when the command ends. */
  temporary: string;
  /** Folder of the programs' environment. */
  python: string;
  /** One for each of the run's tasks, in their order. */
  taskFolders: string[];
}

/** Prefix of the folders with a command's certificates and with the data that its actors see. */
const RUN_FOLDERS = "longrun-run-";
/** A run certificate outlives any run. */
const CERTIFICATE_SECONDS = 366 * 24 * 3600;

/** Runs `work`: the first Ctrl-C stops it in order, and its temporary files are removed. */
export async function runLocalCommand(
  options: LocalOptions,
  around: Surroundings,
  work: (local: LocalCommand) => Promise<number>,
): Promise<number> {
  const terminal = new Terminal(options.json ? { write: () => {} } : around.stdout, around.env);
  const cleanUps: (() => void)[] = [];
  const cleanUp = (): void => {
    for (const step of cleanUps.splice(0).reverse())
      try {
        step();
      } catch {
        // Files on a read-only disk cannot be removed. This error must not hide the reason for the command's end.
      }
  };
  process.on("exit", cleanUp);
  const say = (line: string): void => {
    terminal.clear();
    around.stderr.write(`${line}\n`);
  };
  let goOn: string | undefined;
  const interruption = listenForInterrupts(
    () => say("Stopping; Ctrl-C again stops at once."),
    () => say(`Stopped at once.${goOn === undefined ? "" : ` Go on with: ${goOn}`}`),
  );
  const shown = new Set<string>();
  try {
    const steps = {
      parts: around.parts,
      signal: interruption.signal,
      env: around.env,
      // A step is shown once: the Python environment is prepared twice if a bundled task comes without a manifest.
      step: (text: string) => {
        if (!shown.has(text)) terminal.step(text);
        shown.add(text);
      },
      progress: (text: string) => terminal.progress(text),
    };
    const listen = parseAddress(options.listen, "--listen");
    const metricsListen = parseAddress(options.metricsListen, "--metrics-listen");
    return await work({
      terminal,
      around,
      options,
      steps,
      listen,
      metricsListen,
      canGoOn: (how) => {
        goOn = how;
      },
      atEnd: (step) => void cleanUps.push(step),
    });
  } finally {
    terminal.clear();
    interruption.dispose();
    process.off("exit", cleanUp);
    cleanUp();
  }
}

export async function checkAddresses({ listen, metricsListen }: LocalCommand): Promise<void> {
  await checkFree(listen, "--listen");
  await checkFree(metricsListen, "--metrics-listen");
}

/** Gets the Python environment and the tasks ready. */
export async function prepare({ options, steps, atEnd }: LocalCommand, run: TrainingRun): Promise<Prepared> {
  const temporary = makeTemporaryFolder(RUN_FOLDERS);
  atEnd(() => {
    rmSync(temporary, { recursive: true, force: true });
    removeLeftFolders(RUN_FOLDERS); // a killed command's actor may have used its folder when this command began
  });
  const python = await preparePython(options.python, run.spec.actors.packages, steps);
  const taskFolders: string[] = [];
  for (const task of run.spec.tasks)
    taskFolders.push(
      task.publicData
        ? layOutCustomTask(task, join(temporary, "task"))
        : await prepareBundledTask(task.name, python.python, steps),
    );
  return { temporary, python: python.directory, taskFolders };
}

/**
 * Starts learner and actors and waits for the end.
 *
 * @param isNew whether the folder was created for this command; it is removed if the learner never starts because of its input
 * @returns the exit status
 */
export async function startBackend(
  { terminal, around, options, steps, listen, metricsListen, atEnd, canGoOn }: LocalCommand,
  { temporary, python, taskFolders }: Prepared,
  what: Pick<BackendOptions, "run" | "directory" | "learnerArguments" | "showEnd" | "goOn" | "json"> &
    Pick<BackendOptions, "learnerEnvironment" | "showStopped"> & { isNew: boolean },
): Promise<number> {
  const { run, directory, isNew, goOn } = what;
  canGoOn(goOn);
  atEnd(() => releaseRunFolder(directory));
  const tls = await writeRunCertificates(join(temporary, "tls"), {
    validSeconds: CERTIFICATE_SECONDS,
    pastSeconds: CERTIFICATE_SECONDS, // the clock may be ahead now, and be corrected during the run
    hosts: ["localhost", "127.0.0.1", "::1", ...(listen.host === undefined ? [] : [listen.host])],
  });
  const publicFolder = join(temporary, "public");
  for (const [index, { name }] of run.spec.tasks.entries()) layOutPublicData(name, taskFolders[index]!, publicFolder);
  const backend = new Backend({
    ...what,
    verbose: options.verbose,
    temporary,
    taskFolders,
    publicFolder,
    python,
    tls,
    listen,
    metricsListen,
    around,
    terminal,
  });
  try {
    return await backend.train(steps.signal);
  } catch (error) {
    if ((error as ControllerError).code === "input" && isNew && !backend.started)
      rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}
