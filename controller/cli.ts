/**
 * The command line `longrun`; `cli/commands.ts` has its commands.
 *
 * Exit status: 0 done, 1 failed, 2 bad input, 130 interrupted. A command of another part (learner, actor) starts that part's
 * program as a process (`parts.ts`).
 */
import { readFileSync } from "node:fs";
import { endOnClosedPipe } from "../proto/closed-pipe.ts";
import { commandsOf } from "./cli/commands.ts";
import { dispatch } from "./dispatch.ts";
import { PARTS, type Parts } from "./parts.ts";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** @returns the exit status */
<<<<<<< HEAD
export async function main(argv: string[], parts: Parts = PARTS): Promise<number> {
  let status: number = EXIT.done;
  const program = describe(parts, (result) => {
    status = result;
  });
  try {
    await program.parseAsync(withoutHelp(argv, program) ?? argv);
    return status;
  } catch (error) {
    if (error instanceof CommanderError) {
      const help = HELPS[error.code]?.(argv[2]!);
      if (help !== undefined && !error.message.includes("Did you mean")) process.stderr.write(`${help}\n`);
      return error.exitCode === 0 ? EXIT.done : EXIT.badInput;
    }
    const { message, code } = error as ControllerError;
    if (code !== "interrupted") process.stderr.write(`${harmless(message)}\n`);
    return exitStatusOf(error);
  }
}

/** Every command with its options. @param finish gets the exit status of the one that ran */
export function describe(parts: Parts, finish: (status: number) => void): Command {
  const program = new Command("longrun")
    .description("Trains machine-learning-engineering agents by reinforcement learning.")
    .version(VERSION)
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", "\nExit status: 0 done, 1 failed, 2 bad input, 130 interrupted.");

  program
    .command("run")
    .description("run the training of a manifest on this machine")
    .argument("[FILE]", "TrainingRun manifest; not with --task or --resume")
    .addOption(
      repeated(
        "--task <TASK>",
        "instead of a manifest: a task folder, or the name of a bundled task; may be repeated",
        "none",
      ),
    )
    .option("--model <MODEL>", "with --task: model folder, or the name of a bundled policy (default: quickstart)")
    .option("--out <DIR>", "run folder (default: runs/NAME-TIME)")
    .addOption(setOption())
    .option("--resume <DIR>", "continue the run in this folder, with its own manifest")
    .option("--json", "print a line of metrics for each iteration instead of the live view", false)
    .addOption(verboseOption())
    .addOption(listenOption())
    .addOption(metricsListenOption())
    .option("--replay <STORE>", "take batches and results from the store.sqlite of an earlier run")
    .option("--generators <URLS>", "generators that write solutions instead of the learner: https://HOST:PORT[,…]")
    .option(
      "--generators-tls <DIR>",
      "folder with the learner's certificate for generators, made by longrun certificates",
    )
    .addOption(pythonOption())
    .action(async (file: string | undefined, options) => {
      // Loaded here, because it loads the gRPC channel, which the other commands do not need.
      const { runLocally } = await import("./local/run.ts");
      finish(await runLocally(file, options, surroundings(parts)));
    });

  program
    .command("evaluate")
    .description("measure a policy: execute and grade programs from scratch and improvements of them")
    .argument("[FILE]", "TrainingRun manifest whose model, task, prompts and limits are used; not with --run")
    .option("--run <DIR>", "run folder: its starting weights and its newest checkpoint, on its task")
    .option("--model <DIR>", "model folder, or the name of a bundled policy")
    .option("--task <TASK>", "prepared task folder, or the name of a bundled task")
    .option("--samples <N>", "programs from scratch; with --protocol equal, programs in all", "128")
    .option("--improve", "improve the valid programs, too", false)
    .addOption(
      new Option(
        "--protocol <PROTOCOL>",
        "paper: N from scratch and N improvements, the better of the two; equal: N/2 and N/2 (with --improve: paper)",
      ).choices(["paper", "equal"]),
    )
    .option("--seed <S>", "the same seed gives the same programs (default: the manifest's, else 0)")
    .option("--out <DIR>", "folder of the evaluation (default: RUN/evaluation, or evaluations/MODEL-TASK)")
    .addOption(new Option("--output <DIR>", "the earlier name of --out").hideHelp())
    .addOption(setOption())
    .option("--json", "print all numbers as one object instead of the live view", false)
    .option(
      "--table <RUN...>",
      "print the evaluations in these run folders as a table like the paper's Table 2, in Markdown; with --out, write table.md and table.csv there",
    )
    .option("--csv", "print the table as CSV", false)
    .addOption(verboseOption())
    .addOption(listenOption())
    .addOption(metricsListenOption())
    .addOption(pythonOption())
    .addHelpText(
      "after",
      "\nThe folder keeps finished work: after Ctrl-C the same command continues, and after the end it prints the result.",
    )
    .action(async (file: string | undefined, { table, csv, output, ...options }) => {
      options.out ??= output;
      if (table) {
        const { out } = options as { out?: string };
        const how = [...(csv ? ["--csv"] : []), ...(out ? ["--out", out] : []), ...(options.json ? ["--json"] : [])];
        return finish(await becomePart(parts.evaluationTable, [...how, "--", ...table]));
      }
      const { evaluateLocally } = await import("./local/evaluation/evaluate.ts");
      finish(await evaluateLocally(file, options, surroundings(parts)));
    });

  program
    .command("controller")
    .description("reconcile the TrainingRuns of a Kubernetes cluster, from within it or from outside")
    .addOption(kubeconfigOption())
    .addOption(repeated("--namespace <NAME>", "only this namespace; may be repeated", "all"))
    .option("--namespace-selector <LABELS>", 'only namespaces with these labels, such as team=a or "team in (a, b)"')
    .option("--controller-class <NAME>", "only runs whose spec.controllerClass is this; default: runs without a class")
    .option("--leader-elect", "elect one active replica by the Lease longrun-controller", false)
    .option("--metrics-address <HOST:PORT>", "address of /metrics, /healthz and /readyz", ":8080")
    .option("--image <IMAGE>", "learner's image for runs that name none; required, like the next two")
    .option("--actor-image <IMAGE>", "image of actors' supervisors for runs that name none")
    .option("--sandbox-image <IMAGE>", "image of sandboxes for runs that name none")
    .option("--image-pull-policy <POLICY>", "pull policy of these images, unless a run sets its own", "IfNotPresent")
    .option("--run-defaults <FILE>", "part of a TrainingRun's spec, used for fields that a run omits")
    .option("--kueue", "a run that names a queue starts when Kueue admits it; needs Kueue's CRDs", false)
    .addOption(
      repeated(
        "--webhook-allow <HOST>",
        "allowed host for webhooks of runs: a name or IP address, or *.DOMAIN for internet addresses only; may be repeated, or separated by commas",
        "none",
      ),
    )
    .option(
      "--dns <JSON>",
      'DNS servers that pods of runs may ask: {"to": [a NetworkPolicy\'s peers], "ports": [numbers]}; default: those of common clusters',
    )
    .option("--workers <N>", "runs that are reconciled at once", "8")
    .option("--qps <N>", "requests a second to the API server, on average", "50")
    .option("--burst <N>", "requests at once after a pause", "100")
    .action(async (options) => {
      const { runController } = await import("./cli/controller-command.ts");
      finish(await stoppable((signal) => runController(options, signal)));
    });

  program
    .command("smoke-test")
    .description("test an installation: create a TrainingRun on a cluster, wait for its end, delete it")
    .argument("<FILE>", "TrainingRun manifest")
    .addOption(kubeconfigOption())
    .option("--namespace <NAME>", "namespace of the TrainingRun", "default")
    .option("--timeout <SECONDS>", "longest wait for its end", "900")
    .action(async (file: string, { kubeconfig, namespace, timeout }) => {
      const { clusterClient } = await import("./cli/controller-command.ts");
      const { smokeTest } = await import("./cli/smoke-test.ts");
      const manifest = { manifest: readInput(file), source: file, namespace };
      const timeoutSeconds = positive(timeout, "--timeout");
      finish(
        await interruptible((signal) =>
          smokeTest({ client: clusterClient(kubeconfig), ...manifest, timeoutSeconds, say: sayLine, signal }),
        ),
      );
    });

  program
    .command("release-runs")
    .description("remove longrun's finalizer from all TrainingRuns when no controller is left")
    .addOption(kubeconfigOption())
    .addOption(repeated("--namespace <NAME>", "only this namespace; may be repeated", "all"))
    .option("--controller <NAMESPACE/LEASE>", "only runs that this controller has claimed, or none")
    .option("--quiet <SECONDS>", "end after this time without a finalizer", "10")
    .action(async ({ kubeconfig, namespace: namespaces, controller, quiet }) => {
      const { clusterClient } = await import("./cli/controller-command.ts");
      const { releaseRuns } = await import("./cli/release-runs.ts");
      const quietSeconds = positive(quiet, "--quiet");
      finish(
        await interruptible((signal) =>
          releaseRuns({
            client: clusterClient(kubeconfig),
            namespaces,
            controller,
            quietSeconds,
            say: sayLine,
            signal,
          }),
        ),
      );
    });

  program
    .command("exec")
    .description("execute one program like an actor, and grade its submission")
    .argument("<PROGRAM>", "Python file")
    .requiredOption("--task <TASK>", "task folder, or the name of a bundled task")
    .option("--json", "print one object", false)
    .addHelpText("after", "\nThe program finds the task's public files in ./input/ and writes ./submission.csv.")
    .addOption(pythonOption())
    .addOption(packagesOption())
    .action(async (file: string, options) => {
      finish(await interruptible((signal) => executeProgram(file, options, parts, signal)));
    });

  program
    .command("best")
    .description("print the best program of a run folder, and its score")
    .argument("<RUN>", "run folder")
    .option("--task <TASK>", "task, if the run has several")
    .option("--json", "print score and program as one object", false)
    .action(async (run: string, options: BestOptions) => {
      const { printBestHere } = await import("./cli/best-here.ts");
      await printBestHere(run, options, process.stdout);
    });

  program
    .command("samples")
    .description("list the samples of a run folder with their outcomes")
    .argument("<RUN>", "run folder")
    .option("--failed", "only samples without a valid submission", false)
    .option("--show <ID>", "show one sample: plan, program, terminal output, grade")
    .option("--export <FILE>", "write the valid samples as lines that longrun sft and TRL read")
    .option("--best <N>", "with --export: the best N samples of each task (default: all)")
    .option("--json", "print an object for each sample", false)
    .action(async (run: string, options: SamplesOptions) => {
      const { showSamples } = await import("./cli/samples.ts");
      finish(await showSamples(run, options, parts, process.stdout));
    });

  program
    .command("validate")
    .description("check the TrainingRuns of manifests with their folders and lengths, like run")
    .argument("<FILE...>", "manifests; objects of other kinds are skipped")
    .addOption(setOption())
    .option("--cluster", "check like Kubernetes: refuse paths of this machine, check no folder", false)
    .option("--replaces <OLD>", "manifest of the existing TrainingRun: refuse changes of fields that cannot change")
    .action(async (files: string[], options: ValidateOptions) => {
      const { validate } = await import("./cli/validate.ts");
      await validate(files, options, parts, sayLine);
    });

  program
    .command("debug")
    .description("write a support bundle of a run, without secrets, answers or weights")
    .argument("<RUN>", "run folder; or NAME or NAMESPACE/NAME of a TrainingRun on the cluster")
    .option("--namespace <NAMESPACE>", "namespace of the TrainingRun (default: the context's)")
    .addOption(kubeconfigOption())
    .option("--context <NAME>", "context of the kubeconfig (default: the current one)")
    .option("--out <FILE>", "path of the bundle (default: longrun-debug-RUN-TIME.tar.gz)")
    .action(async (run: string, options: DebugOptions) => {
      const { writeBundle } = await import("./debug/bundle.ts");
      process.stdout.write(`${await writeBundle(run, options, new Date())}\n`);
    });

  program
    .command("prepare")
    .description("prepare bundled tasks and the Python environment")
    .argument("<TASK...>", "names of bundled tasks, e.g. diamonds")
    .addOption(pythonOption())
    .addOption(packagesOption())
    .action(async (tasks: string[], options: { python?: string; packages?: Actors["packages"] }) => {
      const unknown = tasks.find((task) => !isTaskName(task));
      if (unknown !== undefined)
        throw new ControllerError(
          "input",
          `${unknown}: there is no bundled task of this name; there are ${BUNDLED.tasks.join(", ")}`,
        );
      await interruptible(async (signal) => {
        const say = (text: string): void => void process.stderr.write(`${text}\n`);
        const steps = { parts, signal, env: process.env, step: say, progress: say };
        const { python } = await preparePython(options.python, options.packages, steps);
        for (const task of tasks) process.stdout.write(`${await prepareBundledTask(task, python, steps)}\n`);
      });
    });

  program
    .command("certificates")
    .description("make the certificates of a learner and its generators on other machines")
    .requiredOption("--out <DIR>", "folder to make: learner/ for longrun run, generator/ for longrun serve")
    .requiredOption("--hosts <HOSTS>", "names and addresses of the generators, as --generators has them: a,b")
    .option("--days <N>", "days for which the certificates are valid", "365")
    .action(async (options: { out: string; hosts: string; days: string }) => {
      const { writeGeneratorCertificates } = await import("./local/generators.ts");
      await writeGeneratorCertificates(options);
    });

  program
    .command("completion")
    .description("print a script that completes commands and options in a shell")
    .addArgument(new Argument("<SHELL>", "whose script").choices(SHELLS))
    .action((shell: Shell) => void process.stdout.write(completionScript(shell, program)));

  // A part shows its help itself; the examples come after it.
  for (const command of program.commands) command.addHelpText("after", examplesOf(command.name()).trimEnd());
  for (const [name, { part, description }] of Object.entries(PART_COMMANDS)) {
    program
      .command(name)
      .description(description)
      .argument("[ARGUMENTS...]")
      .allowUnknownOption()
      .helpOption(false)
      .action(async (_: string[], __: unknown, command: Command) => {
        finish(await becomePart(parts[part], command.args));
        if (command.args.includes("--help")) process.stdout.write(examplesOf(name));
      });
  }
  return program;
}

/** Turns `help COMMAND` into `COMMAND --help`, which the parts' own commands answer too. An unknown COMMAND is refused. */
function withoutHelp([node, file, word, name]: string[], program: Command): string[] | undefined {
  if (word !== "help" || name === undefined) return undefined;
  return program.commands.some((command) => command.name() === name)
    ? [node!, file!, name, "--help"]
    : [node!, file!, name];
}

function surroundings(parts: Parts) {
  return { parts, stdout: process.stdout, stderr: process.stderr, env: process.env, now: () => new Date() };
}

const sayLine = (line: string): void => void process.stdout.write(`${line}\n`);

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
=======
export function main(argv: string[], parts: Parts = PARTS): Promise<number> {
  const program = {
    name: "longrun",
    description: "Trains machine-learning-engineering agents by reinforcement learning.",
    version,
    commands: commandsOf(parts),
  };
  return dispatch(program, argv.slice(2), process.stdout, process.stderr);
>>>>>>> main
}

if (import.meta.main) {
  endOnClosedPipe();
  process.exitCode = await main(process.argv);
}
