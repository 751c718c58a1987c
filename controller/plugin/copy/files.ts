/** Copies a run folder, or its best program, report or weights, out of the cluster. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Writable } from "node:stream";
import { describeFileError } from "../../../proto/errors.ts";
import { checkFolder, makeFolder } from "../../../proto/folders.ts";
import { printBest } from "../../cli/best.ts";
import type { BestOptions } from "../../cli/run-folder-options.ts";
import { ControllerError } from "../../errors.ts";
import type { Screen } from "../../local/terminal/terminal.ts";
import type { Run } from "../../operator/desired/names.ts";
import { forwardPort } from "../../operator/parts/learner/port-forward.ts";
import { type Cluster, readRun } from "../cluster.ts";
import { type Container, execute, outputOf } from "./exec.ts";
import { findLearner, REPORT_PORT, RUN_FOLDER, type RunFolderOptions, withRunFolder } from "./run-folder.ts";

export const WHAT = ["model", "best", "run"] as const;
export type What = (typeof WHAT)[number];

/** Prints the best program of a task, below one comment line with its score. */
export async function showBest(
  cluster: Cluster,
  name: string,
  { task, json, ...options }: RunFolderOptions & BestOptions,
  screen: Screen,
): Promise<void> {
  const run = await readRun(cluster, name);
  const tasks = run.spec.tasks.map((each) => each.name);
  await withRunFolder(cluster, run, options, (at) => {
    const read = (path: string) =>
      outputOf(cluster, at, ["cat", `${RUN_FOLDER}/${path}`]).then(
        (it) => it.toString("utf8"),
        (cause: Error) => {
          if (!/No such file/.test(cause.message)) throw cause;
          return undefined;
        },
      );
    return printBest(name, tasks, { task, json }, read, screen);
  });
}

/** @returns the file's path */
export async function fetchReport(
  cluster: Cluster,
  name: string,
  { out = `${name}-report.html`, ...options }: RunFolderOptions & { out?: string | undefined },
): Promise<string> {
  const run = await readRun(cluster, name);
  const page = await withRunFolder(cluster, run, options, (at) =>
    outputOf(cluster, at, ["cat", `${RUN_FOLDER}/report.html`]).catch((cause: Error) => {
      if (!/No such file/.test(cause.message)) throw cause;
      throw new ControllerError("failed", `${name} has no report yet: it appears with the first iteration`, { cause });
    }),
  );
  try {
    writeFileSync(out, page);
  } catch (cause) {
    throw new ControllerError("input", describeFileError(out, cause), { cause });
  }
  return resolve(out);
}

/** Serves the learner's page on this machine, until Ctrl-C. */
export async function serveReport(cluster: Cluster, name: string, say: (line: string) => void): Promise<void> {
  const learner = await findLearner(cluster, await readRun(cluster, name));
  if (!learner)
    throw new ControllerError(
      "failed",
      `no learner of ${name} runs; without --live the report is fetched from its volume`,
    );
  const { namespace, pod } = learner;
  const forward = await forwardPort(cluster.config, { namespace, pod, port: REPORT_PORT });
  try {
    say(`http://${forward.address}/report   (Ctrl-C ends it)`);
    if (!cluster.signal.aborted) await once(cluster.signal, "abort");
  } finally {
    forward.close();
  }
}

/**
 * Copies the model, the best program or the whole run folder into a folder on this machine, which gets its name when it is complete.
 *
 * @returns its path
 */
export async function pull(
  cluster: Cluster,
  name: string,
  what: What,
  { out, ...options }: RunFolderOptions & { out?: string | undefined },
): Promise<string> {
  const target = resolve(out ?? (what === "run" ? name : `${name}-${what}`));
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new ControllerError("input", `${target}: is there already and not empty; name another folder with --out`);
  const partial = `${target}.partial`;
  checkFolder(partial, "--out");
  const run = await readRun(cluster, name);
  if (what === "run" && (await findLearner(cluster, run)))
    throw new ControllerError(
      "failed",
      `the learner of ${name} writes to its folder: kubectl longrun pause ${name} first, or pull model or best`,
    );
  rmSync(partial, { recursive: true, force: true });
  makeFolder(partial, "--out");
  try {
    await withRunFolder(cluster, run, options, (at) => copy(cluster, at, tarOf(run, what), partial));
    rmSync(target, { recursive: true, force: true });
    renameSync(partial, target);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return target;
}

/** Returns the tar command. Only the policy's folder of a checkpoint is copied, because moments and critic are useful to the run alone. */
function tarOf(run: Run, what: What): string[] {
  const tar = (folder: string) => ["tar", "-cf", "-", "-C", folder, "."];
  if (what !== "model") return tar(what === "run" ? RUN_FOLDER : `${RUN_FOLDER}/best`);
  const { path } = run.status?.checkpoint ?? {};
  if (!path) throw new ControllerError("failed", `${run.metadata.name} has written no checkpoint yet`);
  return tar(`${RUN_FOLDER}/${path}/policy`);
}

async function copy(cluster: Cluster, at: Container, command: string[], directory: string): Promise<void> {
  // The user who unpacks owns the files. tar itself refuses paths outside the folder.
  const tar = spawn("tar", ["-xf", "-", "-C", directory, "--no-same-owner"], { stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  tar.stderr.on("data", (text) => {
    said += text;
  });
  const exited = Promise.withResolvers<number | null>();
  tar.once("error", (cause) => exited.reject(new ControllerError("failed", `tar: ${cause.message}`, { cause })));
  tar.once("close", exited.resolve);
  const unpacked = exited.promise.then((status) => {
    if (status === 0) return;
    throw new ControllerError("failed", `tar ended with status ${status}: ${said.trim().split("\n").at(-1)}`);
  });
  tar.stdin.on("error", () => {}); // its exit status says what went wrong
  // tar may end before the last bytes, which only fill a block and are dropped.
  const output = new Writable({ write: (chunk, _, done) => void tar.stdin.write(chunk, () => done()) });
  try {
    // A tar that fails, for example on a full disk, ends the copy. If it succeeds, the exit status of the other tar decides.
    await Promise.race([execute(cluster, at, command, output), unpacked.then(() => new Promise<never>(() => {}))]);
    await new Promise<void>((resolve) => output.end(resolve));
    tar.stdin.end();
    await unpacked;
  } catch (error) {
    tar.kill();
    throw error;
  }
}
