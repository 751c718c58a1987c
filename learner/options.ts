/** The learner's command line. */
import { existsSync } from "node:fs";
import { ManifestError } from "../crds/trainingrun.ts";
import { parse } from "../proto/command-line.ts";
import { parseUrls } from "./generators/addresses.ts";

const OPTIONS = {
  "run <DIR>": "the run folder",
  "run-id <ID>": "the run's name in log lines, as in the controller's (default: the name in the manifest)",
  "listen <HOST:PORT>": { help: "address of the gRPC server; port 0 is any free one", default: "127.0.0.1:0" },
  "metrics-listen <HOST:PORT>": { help: "of /report, /metrics, /healthz and /readyz", default: "127.0.0.1:0" },
  "tls <DIR>": "folder with ca.crt, tls.crt, tls.key; may change while the process runs",
  "task-dir <DIR...>": "folder of a task, with its answers; one for each of spec.tasks, in their order",
  "replay <STORE>": "store of an earlier run whose batches and results are used again",
  "manifest <FILE>":
    "a newer manifest, which replaces the run folder's own; fields that cannot change in a run that has begun must be as they were",
  "model-dir <DIR>": {
    help: "base of a relative spec.model.policy: the mount of spec.model.volume",
    default: "/model",
  },
  "device <DEVICE>": {
    help: "auto, cpu, cuda (all GPUs) or cuda:N,M (default: spec.learner.device)",
    default: process.env.LONGRUN_DEVICE,
  },
  "memory-bytes <N>": {
    help: "bytes that the run may take of its device's memory (default: all that is free)",
    default: process.env.LONGRUN_MEMORY_BYTES,
  },
  "generators <URLS>": {
    help: "https://HOST:PORT[,…] of generators, which write solutions in the learner's place",
    default: process.env.LONGRUN_GENERATORS,
  },
  "generators-tls <DIR>": "folder with ca.crt, tls.crt and tls.key for generators (default: --tls)",
  stay: "serve status and metrics after success until SIGTERM, and do not begin a run again that has succeeded",
  "termination-log <FILE>": "file for one line that says why the process ended: the container's status",
} as const;

/** Kubernetes mounts a container's termination message file here. */
const TERMINATION_LOG = "/dev/termination-log";

export type Options = ReturnType<typeof parseOptions>;

/** @throws ManifestError, one line */
export function parseOptions(args: string[]) {
  const { device, generators, memoryBytes, terminationLog, ...values } = valuesOf(args);
  const tls = needed(values.tls, "tls");
  return {
    ...values,
    run: needed(values.run, "run"),
    tls,
    taskDirs: needed(values.taskDir.length > 0 ? values.taskDir : undefined, "task-dir"),
    device: device || undefined,
    generators: parseUrls(generators ?? ""),
    generatorsTls: values.generatorsTls ?? tls,
    memoryBytes: byteCount(memoryBytes),
    terminationLog: terminationLog ?? defaultTerminationLog(),
  };
}

function needed<T>(value: T | undefined, option: string): T {
  if (value === undefined) throw new ManifestError([`--${option} is missing`]);
  return value;
}

function valuesOf(args: string[]) {
  try {
    return parse({ name: "learner/main.ts", options: OPTIONS }, args).values;
  } catch (cause) {
    throw new ManifestError([(cause as Error).message.split("\n")[0]!], { cause });
  }
}

function byteCount(text: string | undefined): number | undefined {
  if (!text) return undefined;
  if (/^\d+$/.test(text) && Number(text) > 0) return Number(text);
  throw new ManifestError([`--memory-bytes (LONGRUN_MEMORY_BYTES) is ${text}; give a number of bytes`]);
}

/** Undefined outside of a container, where nobody would read it. */
export const defaultTerminationLog = (): string | undefined =>
  existsSync(TERMINATION_LOG) ? TERMINATION_LOG : undefined;
