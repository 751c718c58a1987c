/**
 * `kubectl longrun`: inspects and steers a run on a cluster. `node controller/plugin/bundle.ts` makes one file of it.
 *
 * Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted.
 */
import type { Options, Values } from "../../proto/command-line.ts";
import { clusterFiles } from "../debug/cluster.ts";
import { packBundle } from "../debug/pack.ts";
import { bind, dispatch, type Runnable } from "../dispatch.ts";
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
  const program = {
    name: "kubectl longrun",
    description: "Inspects and steers the TrainingRuns of a cluster.",
    version: typeof LONGRUN_VERSION === "undefined" ? "from source" : LONGRUN_VERSION,
    commands: commandsOf(stdout, stderr, interruption.signal),
    options: CLUSTER,
  };
  try {
    return await dispatch(program, argv.slice(2), stdout, stderr);
  } finally {
    interruption.dispose();
  }
}

const CLUSTER = {
  namespace: { value: "NAME", short: "n", help: "namespace of the TrainingRun (default: the context's)" },
  context: { value: "NAME", help: "context of the kubeconfig (default: the current one)" },
  kubeconfig: { value: "FILE", help: "how to reach the cluster (default: as kubectl)" },
} as const;

const timeout = (help: string, seconds: string) =>
  ({ timeout: { value: "SECONDS", help, default: seconds, as: positive } }) as const;
const FOR_POD = timeout("longest wait for the pod that reads the volume while no learner runs", "120");
const out = (help: string) => ({ out: { value: "PATH", help } }) as const;

function commandsOf(stdout: Screen, stderr: Screen, signal: AbortSignal): Runnable[] {
  const say = (line: string): void => void stderr.write(`${line}\n`);
  const print = (line: string): void => void stdout.write(`${line}\n`);

  /** A command on a cluster; `work` must not close it. */
  const onCluster = <const O extends Options>(
    command: {
      name: string;
      description: string;
      arguments?: Record<string, string>;
      choices?: readonly string[];
      options: O;
    },
    work: (cluster: Cluster, options: Values<O>, ...words: string[]) => Promise<void>,
  ): Runnable => {
    const { name, options, ...more } = command;
    return bind(
      { ...more, name: `kubectl longrun ${name}`, options: { ...options, ...CLUSTER } },
      async (given, ...words) => {
        const cluster = connect(given as ClusterOptions, signal);
        try {
          await work(cluster, given as unknown as Values<O>, ...words);
        } finally {
          cluster.client.close();
        }
      },
    );
  };
  const RUN = { "<RUN>": "name of a TrainingRun" };

  const status = onCluster(
    {
      name: "status",
      description: "shows the run's activity, scores and blockers",
      arguments: RUN,
      options: {
        once: { help: "print once and exit" },
        json: { help: "print the object's status once, as JSON" },
        interval: { value: "SECONDS", help: "seconds between two refreshes", default: "2", as: positive },
      },
    },
    (cluster, { once, json, interval: intervalSeconds }, run) =>
      showStatus(cluster, run, { watch: !once && !json, json, intervalSeconds }, stdout),
  );

  const logs = onCluster(
    {
      name: "logs",
      description: "prints the logs of the learner, or of the actors",
      arguments: RUN,
      options: {
        actors: { help: "logs of the actors' supervisors" },
        follow: { short: "f", help: "follow new lines" },
        previous: { short: "p", help: "log of the container before its last restart" },
        tail: { value: "LINES", help: "only the newest lines of each log", as: positive },
      },
    },
    (cluster, { actors, follow, previous, tail }, run) =>
      showLogs(cluster, run, { component: actors ? "actor" : "learner", follow, previous, tail }, stdout),
  );

  const best = onCluster(
    {
      name: "best",
      description: "prints the best program and its score",
      arguments: RUN,
      options: {
        task: { value: "TASK", help: "task, if the run has several" },
        json: { help: "print score and program as one JSON object" },
        ...FOR_POD,
      },
    },
    (cluster, { task, json, timeout: timeoutSeconds }, run) =>
      showBest(cluster, run, { task, json, timeoutSeconds, say }, stdout),
  );

  const report = onCluster(
    {
      name: "report",
      description: "copies report.html, or serves the live page",
      arguments: RUN,
      options: {
        ...out("path of the file (default: RUN-report.html)"),
        live: { help: "serve the learner's page at a local address, until Ctrl-C" },
        ...FOR_POD,
      },
    },
    async (cluster, { out, live, timeout: timeoutSeconds }, run) => {
      if (live) return serveReport(cluster, run, print);
      print(await fetchReport(cluster, run, { out, timeoutSeconds, say }));
    },
  );

  const volumes = onCluster(
    {
      name: "volumes",
      description: "lists the volumes that have outlived their runs, or whose runs are over",
      options: {
        "all-namespaces": { short: "A", help: "volumes of all namespaces" },
        json: { help: "print a list of objects" },
      },
    },
    (cluster, options) => listVolumes(cluster, options, stdout),
  );

  const debug = onCluster(
    {
      name: "debug",
      description: "writes a support bundle: objects, events, logs, metrics; no secrets, answers, weights or programs",
      arguments: RUN,
      options: out("path of the bundle (default: longrun-debug-RUN-TIME.tar.gz)"),
    },
    async ({ config, namespace }, { out }, run) =>
      print(packBundle(run, await clusterFiles(config, namespace, run), out, new Date())),
  );

  const copy = onCluster(
    {
      name: "pull",
      description:
        "copies out of the cluster: the newest checkpoint's model, the best program with its submission, or the run folder",
      arguments: { ...RUN, "<WHAT>": `what to copy: ${WHAT.join(", ")}` },
      choices: WHAT,
      options: { ...out("path of the folder (default: RUN-model, RUN-best, RUN)"), ...FOR_POD },
    },
    async (cluster, { out, timeout: timeoutSeconds }, run, what) =>
      print(await pull(cluster, run, what as What, { out, timeoutSeconds, say })),
  );

  const suspension = (name: string, suspend: boolean, description: string) =>
    onCluster(
      {
        name,
        description,
        arguments: RUN,
        options: { wait: { help: "return when it is done" }, ...timeout("longest wait", "1800") },
      },
      (cluster, { wait, timeout: timeoutSeconds }, run) =>
        setSuspended(cluster, run, suspend, { wait, timeoutSeconds, say: print }),
    );

  const evaluation = onCluster(
    {
      name: "evaluate",
      description: "evaluates the newest checkpoint on the cluster, in a separate TrainingRun",
      arguments: RUN,
      options: {
        as: { value: "NAME", help: "name of the TrainingRun that evaluates (default: RUN-evaluation)" },
        samples: { value: "N", help: "programs from scratch (default: the run's evaluation.samples)", as: positive },
        keep: { help: "keep that TrainingRun, which then trains one iteration" },
        ...timeout("longest wait for the result", "86400"),
      },
    },
    async (cluster, { as, samples, keep, timeout: timeoutSeconds }, run) => {
      const how = { as: as ?? `${run}-evaluation`, samples, keep, say, timeoutSeconds };
      print(JSON.stringify(await evaluate(cluster, run, how), null, 2));
    },
  );

  const pause = suspension("pause", true, "writes a checkpoint and stops learner and actors; the volume stays");
  const resume = suspension("resume", false, "continues from the newest checkpoint");
  return [status, logs, best, report, volumes, debug, copy, pause, resume, evaluation];
}
