/** `longrun solve`: searches for the best program of a task with the learner and actors of `longrun run`, without training. */
import { budgetText, ENDPOINT_KEY } from "../../../proto/solve.ts";
import { EXIT } from "../../errors.ts";
import { fetchPolicy } from "../inputs/fetch-model.ts";
import { taskFolder } from "../inputs/prepare.ts";
import { tasksText } from "../inputs/task-manifest.ts";
import { checkAddresses, type LocalCommand, prepare, runLocalCommand, startBackend } from "../local-command.ts";
import type { SolveOptions } from "../options.ts";
import { releaseRunFolder } from "../run-folder.ts";
import type { Surroundings } from "../surroundings.ts";
import { readSummary, showEnd } from "../terminal/summary.ts";
import { createWorkFolder, openWorkFolder } from "../work-folder.ts";
import { planSolve, refuseSolveRequest, workOf } from "./solve-plan.ts";
import { solveLines } from "./solve-text.ts";

/**
 * Searches, or continues an interrupted search from the results in its folder.
 *
 * @returns the exit status
 * @throws ManifestError | ControllerError; no process is left behind, and no folder when the input was bad
 */
export async function solveLocally(options: SolveOptions, around: Surroundings): Promise<number> {
  // The learner alone gets the key: an actor's environment is nearer to programs.
  const { [ENDPOINT_KEY]: key, ...env } = around.env;
  return runLocalCommand(options, { ...around, env }, async (local) => {
    refuseSolveRequest(options, around.env); // before a bundled task is prepared, because that takes time
    const task = options.task && (await taskFolder(options.task, options.python, local.steps));
    const plan = planSolve({ ...options, task }, around.env);
    const { run, directory, settings } = plan;
    await checkAddresses(local);
    await fetchPolicy(run, local.steps);
    const state = openWorkFolder(directory, workOf(plan));
    if (state === "begun") local.atEnd(() => releaseRunFolder(directory));
    if (state === "done") {
      local.terminal.line(`Searched before: ${directory}; to search on, raise --budget`);
      showSolution(local, directory);
      return EXIT.done;
    }
    const prepared = await prepare(local, run);
    if (state === "new") createWorkFolder(directory, workOf(plan));
    const verb = state === "new" ? "Searching" : "Going on to search";
    const { search, budget, slots, endpoint } = settings;
    const by = endpoint ? `${endpoint.model} at ${endpoint.url}` : (options.run ?? run.spec.model.policy);
    local.terminal.line(
      `${verb} for programs of ${tasksText(run)} by ${by}: ${search}, ${budgetText(budget)}, ${slots} at a time, in ${directory}`,
    );
    return startBackend(local, prepared, {
      run,
      directory,
      json: options.json,
      isNew: state === "new",
      learnerArguments: [],
      ...(key !== undefined && { learnerEnvironment: { [ENDPOINT_KEY]: key } }),
      showEnd: () => showSolution(local, directory),
      showStopped: () => showSolution(local, directory),
      goOn: `the same command; finished work is kept in ${directory}`,
    });
  });
}

/** Prints what was found: the best program's path and score, or all numbers as one object. */
function showSolution({ terminal, options, around }: LocalCommand, directory: string): void {
  const { solve } = readSummary(directory) ?? {};
  if (options.json) {
    around.stdout.write(`${JSON.stringify({ directory, ...solve })}\n`);
    return;
  }
  for (const line of solve ? solveLines(solve) : []) terminal.line(line);
  showEnd(terminal, directory);
}
