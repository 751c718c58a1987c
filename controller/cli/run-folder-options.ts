/** The commands that read run folders or manifests, with their options. */
import type { Values } from "../../proto/command-line.ts";
import { RUNTIME } from "../local/options.ts";

export const BEST = {
  name: "longrun best",
  description: "print the best program of a run folder, and its score",
  arguments: { "<RUN>": "run folder" },
  options: {
    "task <TASK>": "task, if the run has several",
    json: "print score and program as one object",
  },
  examples: ["longrun best runs/short", "longrun best runs/several --task wage"],
} as const;

export const SAMPLES = {
  name: "longrun samples",
  description: "list the samples of a run folder with their outcomes",
  arguments: { "<RUN>": "run folder" },
  options: {
    failed: "only samples without a valid submission",
    "show <ID>": "show one sample: plan, program, terminal output, grade",
    "export <FILE>": "write the valid samples as lines that longrun sft and TRL read",
    "best <N>": "with --export: the best N samples of each task (default: all)",
    json: "print an object for each sample",
  },
  examples: ["longrun samples runs/short --failed", "longrun samples runs/short --show s000001"],
} as const;

export const VALIDATE = {
  name: "longrun validate",
  description: "check the TrainingRuns of manifests with their folders and lengths, like run; and TrainingRuntimes",
  arguments: { "<FILE...>": "manifests; objects of other kinds are skipped" },
  options: {
    "set <PATH=VALUE...>": "change a field, e.g. stopping.iterations=2; may be repeated",
    cluster: "check like Kubernetes: refuse paths of this machine, check no folder",
    ...RUNTIME,
    "replaces <FILE>": "manifest of the existing TrainingRun: refuse changes of fields that cannot change",
  },
  examples: [
    "longrun validate manifests/quickstart/trainingrun.yaml",
    "longrun validate new.yaml --cluster --replaces old.yaml",
    "longrun validate run.yaml --cluster --runtime runtime.yaml",
  ],
} as const;

export type BestOptions = Values<typeof BEST.options>;
export type SamplesOptions = Values<typeof SAMPLES.options>;
export type ValidateOptions = Values<typeof VALIDATE.options>;
