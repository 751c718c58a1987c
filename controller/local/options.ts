/** The commands that work on this machine, with their options. */
import type { Values } from "../../proto/command-line.ts";
import { SEARCH_DEFAULTS, SEARCHES } from "../../proto/solve.ts";
import { positive } from "../numbers.ts";

const SET = {
  "set <PATH=VALUE...>": "change a field, e.g. stopping.iterations=2; may be repeated",
} as const;

const PYTHON = {
  "python <PYTHON>": "interpreter for the programs' environment (default: python3)",
} as const;

const PACKAGES = {
  "packages <SET>": { help: "packages of that environment, like actors.packages", choices: ["Basic", "Paper"] },
} as const;

export const RUNTIME = {
  "runtime <FILE>":
    "TrainingRuntime with the platform's defaults and limits, as kubectl get trainingruntime NAME -o yaml prints it",
} as const;

/** Options of every command with a learner. */
const LOCAL = {
  ...SET,
  ...PYTHON,
  verbose: "show the processes' logs",
  "listen <HOST:PORT>": { help: "where the learner serves actors; port 0 is any free one", default: "127.0.0.1:0" },
  "metrics-listen <HOST:PORT>": {
    help: "where the learner serves its report (/report) and Prometheus metrics; actors at the ports after it",
    default: "127.0.0.1:0",
  },
} as const;

export const RUN = {
  name: "longrun run",
  description: "run the training of a manifest on this machine",
  arguments: { "[FILE]": "TrainingRun manifest; not with --task or --resume" },
  options: {
    "task <TASK...>": "instead of a manifest: a task folder, or the name of a bundled task; may be repeated",
    "model <MODEL>": "with --task: model folder, or the name of a bundled policy (default: quickstart)",
    "out <DIR>": "run folder (default: runs/NAME-TIME)",
    "resume <RUN>": "continue the run in this folder, with its own manifest",
    ...RUNTIME,
    json: "print a line of metrics for each iteration instead of the live view",
    ...LOCAL,
    "replay <STORE>": "take batches and results from the store.sqlite of an earlier run",
    "generators <URLS>": "generators that write solutions instead of the learner: https://HOST:PORT[,…]",
    "generators-tls <DIR>": "folder with the learner's certificate for generators, made by longrun certificates",
  },
  examples: [
    "longrun run manifests/quickstart/trainingrun.yaml",
    "longrun run manifests/quickstart/trainingrun.yaml --out runs/short --set stopping.iterations=2",
    "longrun run --task ./mytask --out runs/mine",
    "longrun run --task diamonds --task movie --task wage",
    "longrun run --resume runs/short",
    "longrun run run.yaml --generators https://gpu-1.example.com:8443 --generators-tls certificates/learner",
  ],
} as const;

export const EVALUATE = {
  name: "longrun evaluate",
  description: "measure a policy: execute and grade programs from scratch and improvements of them",
  arguments: {
    "[FILE...]":
      "TrainingRun manifest whose model, task, prompts and limits are used; not with --run; run folders with --table",
  },
  options: {
    "run <RUN>": "run folder: its starting weights and its newest checkpoint, on its task",
    "model <MODEL>": "model folder, or the name of a bundled policy",
    "task <TASK>": "prepared task folder, or the name of a bundled task",
    "samples <N>": { help: "programs from scratch; with --protocol equal, programs in all", default: "128" },
    improve: "improve the valid programs, too",
    "protocol <PROTOCOL>": {
      help: "paper: N from scratch and N improvements, the better of the two; equal: N/2 and N/2 (with --improve: paper)",
      choices: ["paper", "equal"],
    },
    "seed <S>": "the same seed gives the same programs (default: the manifest's, else 0)",
    "out <DIR>": "folder of the evaluation (default: RUN/evaluation, or evaluations/MODEL-TASK)",
    "output <DIR>": { help: "the earlier name of --out", hidden: true },
    json: "print all numbers as one object instead of the live view",
    "table <RUN>":
      "print the evaluations in this and further run folders as a table like the paper's Table 2, in Markdown; with --out, write table.md and table.csv there",
    csv: "print the table as CSV",
    ...LOCAL,
  },
  notes:
    "The folder keeps finished work: after Ctrl-C the same command continues, and after the end it prints the result.",
  examples: [
    "longrun evaluate --run runs/short",
    "longrun evaluate --model quickstart --task diamonds --samples 32",
    "longrun evaluate --table runs/short --csv",
  ],
} as const;

export const SOLVE = {
  name: "longrun solve",
  description: "search for the best program of a task with a policy, or with a model behind an API",
  options: {
    "task <TASK>": "prepared task folder, or the name of a bundled task (default with --run: the run's)",
    "model <MODEL>": "the policy: a model folder, or the name of a bundled policy",
    "run <RUN>": "the policy: the newest checkpoint of a run folder",
    "endpoint <URL>": "instead of a policy: an OpenAI-compatible API, up to and without /chat/completions",
    "model-name <NAME>": "with --endpoint: the model that it is asked for",
    "budget <BUDGET>": {
      help: "end of the search: 30m, 2h, 50 executions, 200000 tokens (of an endpoint), or several: 2h,50 executions",
      required: "when the search ends, such as 30m or 50 executions",
    },
    "search <SEARCH>": {
      help: "best-of-n: from scratch alone; greedy: AIDE's policy; tree: UCT over ranks",
      choices: SEARCHES,
      default: "greedy",
    },
    "slots <N>": "programs that run side by side (default: the run's, else the cores that the policy leaves)",
    "drafts <N>": { help: "greedy: programs from scratch first", default: String(SEARCH_DEFAULTS.drafts) },
    "debug-probability <P>": {
      help: "greedy: probability of debugging a failed leaf",
      default: String(SEARCH_DEFAULTS.debugProbability),
    },
    "debug-depth <N>": {
      help: "greedy, tree: most debug prompts in a row",
      default: String(SEARCH_DEFAULTS.debugDepth),
    },
    "exploration <C>": { help: "tree: weight of the exploration term", default: String(SEARCH_DEFAULTS.exploration) },
    "concurrency <N>": "with --endpoint: requests side by side (default: twice the slots)",
    "prices <IN,OUT>": "with --endpoint: US dollars for a million tokens of prompts and of answers, to count the cost",
    "body <FIELD=JSON...>": "with --endpoint: a field of each request's body; null leaves one out; may be repeated",
    "seed <S>": "the same seed, policy and results give the same choices (default: the run's, else 0)",
    "out <DIR>": "folder of the search (default: solutions/MODEL-TASK-SEARCH)",
    json: "print the result as one object instead of the live view",
    ...LOCAL,
  },
  notes:
    "The folder keeps finished work: after Ctrl-C the same command continues, also with a larger budget. An endpoint's key is taken from\nLONGRUN_ENDPOINT_KEY alone. learner/solve/README.md says what is sent.",
  examples: [
    "longrun solve --task diamonds --model quickstart --budget 20m",
    "longrun solve --run runs/short --search tree --budget '50 executions'",
    "longrun solve --task diamonds --endpoint https://api.example.com/v1 --model-name large --budget '50 executions'",
  ],
} as const;

export const EXEC = {
  name: "longrun exec",
  description: "execute one program like an actor, and grade its submission",
  arguments: { "<PROGRAM>": "Python file" },
  options: {
    "task <TASK>": {
      help: "task folder, or the name of a bundled task",
      required: "a task folder, or the name of a bundled task",
    },
    json: "print one object",
    ...PYTHON,
    ...PACKAGES,
  },
  notes: "The program finds the task's public files in ./input/ and writes ./submission.csv.",
  examples: ["longrun exec --task diamonds program.py", "longrun exec --task ./mytask program.py --json"],
} as const;

export const PREPARE = {
  name: "longrun prepare",
  description: "prepare bundled tasks and the Python environment",
  arguments: { "<TASK...>": "names of bundled tasks, e.g. diamonds" },
  options: { ...PYTHON, ...PACKAGES },
  examples: ["longrun prepare diamonds", "longrun prepare diamonds movie wage"],
} as const;

export const CERTIFICATES = {
  name: "longrun certificates",
  description: "make the certificates of a learner and its generators on other machines",
  options: {
    "out <DIR>": {
      help: "folder to make: learner/ for longrun run, generator/ for longrun serve",
      required: "the folder to make",
    },
    "hosts <HOSTS>": {
      help: "names and addresses of the generators, as --generators has them: a,b",
      required: "the generators' names and addresses",
    },
    "days <N>": { help: "days for which the certificates are valid", default: "365", as: positive },
  },
  examples: ["longrun certificates --out certificates --hosts gpu-1.example.com,10.0.0.7"],
} as const;

export type RunOptions = Values<typeof RUN.options>;
export type EvaluateOptions = Omit<Values<typeof EVALUATE.options>, "csv" | "table" | "output">;
export type SolveOptions = Values<typeof SOLVE.options>;
export type LocalOptions = Values<typeof LOCAL & Pick<typeof RUN.options, "json">>;
