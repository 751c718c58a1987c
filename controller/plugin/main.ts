/**
 * `kubectl longrun`: inspects and steers a run on a cluster. `node controller/plugin/bundle.ts` makes one file of it.
 *
 * Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted.
 */
import { Argument, Command, CommanderError, Option } from "commander";
import { clusterFiles } from "../debug/cluster.ts";
import { packBundle } from "../debug/pack.ts";
import { type ControllerError, EXIT, exitStatusOf } from "../errors.ts";
import { harmless } from "../harmless.ts";
import { listenForInterrupts } from "../local/interrupt.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { positive } from "../numbers.ts";
import { evaluate, setSuspended } from "./changes.ts";
import { type Cluster, type ClusterOptions, connect } from "./cluster.ts";
import { fetchReport, pull, serveReport, showBest, WHAT, type What } from "./copy/files.ts";
import { showLogs } from "./logs.ts";
import { showStatus } from "./status.ts";
import { listVolumes } from "./volumes.ts";

/** Version of the bundle; the bundler defines it. */
declare const LONGRUN_VERSION: string | undefined;

/** @returns the exit status */
export async function main(
  argv: string[],
  stdout: Screen = process.stdout,
  stderr: Screen = process.stderr,
): Promise<number> {
  const interruption = listenForInterrupts(() => {});
  try {
    await describe(stdout, stderr, interruption.signal).parseAsync(argv);
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badInput;
    const { message, code } = error as ControllerError;
    if (code !== "interrupted") stderr.write(`${harmless(message)}\n`);
    return exitStatusOf(error);
  } finally {
    interruption.dispose();
  }
}

function describe(stdout: Screen, stderr: Screen, signal: AbortSignal): Command {
  const say = (line: string): void => void stderr.write(`${line}\n`);
  const print = (line: string): void => void stdout.write(`${line}\n`);
  const program = new Command("kubectl longrun")
    .description("Inspects and steers the TrainingRuns of a cluster.")
    .version(typeof LONGRUN_VERSION === "undefined" ? "from source" : LONGRUN_VERSION)
    .option("-n, --namespace <NAME>", "namespace of the TrainingRun (default: the context's)")
    .option("--context <NAME>", "context of the kubeconfig (default: the current one)")
    .option("--kubeconfig <FILE>", "how to reach the cluster (default: as kubectl)")
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", "\nExit status: 0 done, 1 failed, 2 bad input, 130 interrupted.");

  /** Adds a command on one run; `work` must not close the cluster. @param more arguments after RUN */
  const onRun = <O>(
    name: string,
    description: string,
    work: (cluster: Cluster, run: string, options: O, ...more: string[]) => Promise<void>,
    more: Argument[] = [],
  ) => {
    const command = program.command(name).description(description).argument("<RUN>", "name of a TrainingRun");
    for (const argument of more) command.addArgument(argument);
    return command.action(async (run: string) => {
      const options = command.optsWithGlobals();
      const cluster = connect(options as ClusterOptions, signal);
      try {
        await work(cluster, run, options as O, ...command.args.slice(1));
      } finally {
        cluster.client.close();
      }
    });
  };
  const waiting = (text: string, seconds: string) => new Option("--timeout <SECONDS>", text).default(seconds);
  const forPod = () => waiting("longest wait for the pod that reads the volume while no learner runs", "120");
  const out = (text: string) => new Option("--out <PATH>", text);

  onRun(
    "status",
    "shows the run's activity, scores and blockers",
    async (cluster, run, options: { once: boolean; json: boolean; interval: string }) => {
      const intervalSeconds = positive(options.interval, "--interval");
      await showStatus(
        cluster,
        run,
        { watch: !options.once && !options.json, json: options.json, intervalSeconds },
        stdout,
      );
    },
  )
    .option("--once", "print once and exit", false)
    .option("--json", "print the object's status once, as JSON", false)
    .option("--interval <SECONDS>", "seconds between two refreshes", "2");

  onRun(
    "logs",
    "prints the logs of the learner, or of the actors",
    async (cluster, run, options: { actors: boolean; follow: boolean; previous: boolean; tail?: string }) => {
      const { actors, follow, previous, tail } = options;
      const component = actors ? "actor" : "learner";
      await showLogs(
        cluster,
        run,
        { component, follow, previous, tail: tail === undefined ? undefined : positive(tail, "--tail") },
        stdout,
      );
    },
  )
    .option("--actors", "logs of the actors' supervisors", false)
    .option("-f, --follow", "follow new lines", false)
    .option("-p, --previous", "log of the container before its last restart", false)
    .option("--tail <LINES>", "only the newest lines of each log");

  onRun(
    "best",
    "prints the best program and its score",
    async (cluster, run, { task, json, timeout }: { task?: string; json: boolean; timeout: string }) => {
      const timeoutSeconds = positive(timeout, "--timeout");
      await showBest(cluster, run, { task, json, timeoutSeconds, say }, stdout);
    },
  )
    .option("--task <TASK>", "task, if the run has several")
    .option("--json", "print score and program as one JSON object", false)
    .addOption(forPod());

  onRun(
    "report",
    "copies report.html, or serves the live page",
    async (cluster, run, options: { out?: string; live: boolean; timeout: string }) => {
      if (options.live) return serveReport(cluster, run, print);
      const timeoutSeconds = positive(options.timeout, "--timeout");
      print(await fetchReport(cluster, run, { out: options.out, timeoutSeconds, say }));
    },
  )
    .addOption(out("path of the file (default: RUN-report.html)"))
    .option("--live", "serve the learner's page at a local address, until Ctrl-C", false)
    .addOption(forPod());

  const volumes = program
    .command("volumes")
    .description("lists the volumes that have outlived their runs, or whose runs are over")
    .option("-A, --all-namespaces", "volumes of all namespaces", false)
    .option("--json", "print a list of objects", false)
    .action(async () => {
      const options = volumes.optsWithGlobals<ClusterOptions & { allNamespaces: boolean; json: boolean }>();
      const cluster = connect(options, signal);
      try {
        await listVolumes(cluster, options, stdout);
      } finally {
        cluster.client.close();
      }
    });

  onRun(
    "debug",
    "writes a support bundle: objects, events, logs, metrics; no secrets, answers, weights or programs",
    async ({ config, namespace }, run, options: { out?: string }) => {
      print(packBundle(run, await clusterFiles(config, namespace, run), options.out, new Date()));
    },
  ).addOption(out("path of the bundle (default: longrun-debug-RUN-TIME.tar.gz)"));

  onRun(
    "pull",
    "copies out of the cluster: the newest checkpoint's model, the best program with its submission, or the run folder",
    async (cluster, run, options: { out?: string; timeout: string }, what) => {
      const timeoutSeconds = positive(options.timeout, "--timeout");
      print(await pull(cluster, run, what as What, { out: options.out, timeoutSeconds, say }));
    },
    [new Argument("<WHAT>", "what to copy").choices(WHAT)],
  )
    .addOption(out("path of the folder (default: RUN-model, RUN-best, RUN)"))
    .addOption(forPod());

  for (const [name, suspend, description] of [
    ["pause", true, "writes a checkpoint and stops learner and actors; the volume stays"],
    ["resume", false, "continues from the newest checkpoint"],
  ] as const)
    onRun(name, description, async (cluster, run, options: { wait: boolean; timeout: string }) => {
      const timeoutSeconds = positive(options.timeout, "--timeout");
      await setSuspended(cluster, run, suspend, { wait: options.wait, timeoutSeconds, say: print });
    })
      .option("--wait", "return when it is done", false)
      .addOption(waiting("longest wait", "1800"));

  onRun(
    "evaluate",
    "evaluates the newest checkpoint on the cluster, in a separate TrainingRun",
    async (cluster, run, options: { as?: string; samples?: string; keep: boolean; timeout: string }) => {
      const { as = `${run}-evaluation`, samples, keep } = options;
      const evaluation = await evaluate(cluster, run, {
        ...{ as, keep, say, timeoutSeconds: positive(options.timeout, "--timeout") },
        samples: samples === undefined ? undefined : positive(samples, "--samples"),
      });
      print(JSON.stringify(evaluation, null, 2));
    },
  )
    .option("--as <NAME>", "name of the TrainingRun that evaluates (default: RUN-evaluation)")
    .option("--samples <N>", "programs from scratch (default: the run's evaluation.samples)")
    .option("--keep", "keep that TrainingRun, which then trains one iteration", false)
    .addOption(waiting("longest wait for the result", "86400"));
  return program;
}
