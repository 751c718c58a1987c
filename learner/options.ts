/** The learner's command line. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { ManifestError } from "../crds/trainingrun.ts";
import { parseUrls } from "./generators/addresses.ts";

const OPTIONS = {
  /** The run folder. */
  run: { type: "string" },
  /** The run's name in log lines, as in the controller's. [the name in the manifest] */
  "run-id": { type: "string" },
  /** `HOST:PORT` of the gRPC server; port 0 is any free one. */
  listen: { type: "string", default: "127.0.0.1:0" },
  /** `HOST:PORT` of `/report`, `/metrics`, `/healthz` and `/readyz`. */
  "metrics-listen": { type: "string", default: "127.0.0.1:0" },
  /** Folder with ca.crt, tls.crt, tls.key; may change while the process runs. */
  tls: { type: "string" },
  /** Folder of a task, with its answers; one for each of spec.tasks, in their order. */
  "task-dir": { type: "string", multiple: true },
  /** Store of an earlier run whose batches and results are used again. */
  replay: { type: "string" },
  /** A newer manifest, which replaces the run folder's own. */
  manifest: { type: "string" },
  /** Base of a relative `spec.model.policy`: the mount of `spec.model.volume`. */
  "model-dir": { type: "string", default: "/model" },
  /** `auto`, `cpu`, `cuda` (all GPUs) or `cuda:N,M`. [`spec.learner.device`] */
  device: { type: "string", default: process.env.LONGRUN_DEVICE },
  /** Bytes that the run may take of its device's memory. [all that is free] */
  "memory-bytes": { type: "string", default: process.env.LONGRUN_MEMORY_BYTES },
  /** `https://HOST:PORT[,…]` of generators, which write solutions in the learner's place. */
  generators: { type: "string", default: process.env.LONGRUN_GENERATORS },
  /** Folder with ca.crt, tls.crt and tls.key for generators. [--tls] */
  "generators-tls": { type: "string" },
  /** Serves status and metrics after the end of the run, until SIGTERM. */
  stay: { type: "boolean", default: false },
  /** File for one line that says why the process ended: the container's status. */
  "termination-log": { type: "string" },
} as const;

/** Kubernetes mounts a container's termination message file here. */
const TERMINATION_LOG = "/dev/termination-log";

export type Options = ReturnType<typeof parseOptions>;

/** @throws ManifestError, one line */
export function parseOptions(args: string[]) {
  const values = valuesOf(args);
  const needed = <N extends "run" | "tls" | "task-dir">(name: N) => {
    const value = values[name];
    if (value === undefined) throw new ManifestError([`--${name} is missing`]);
    return value;
  };
  const { listen, replay, manifest, device, stay } = values;
  return {
    ...{ run: needed("run"), tls: needed("tls"), taskDirs: needed("task-dir") },
    ...{ listen, metricsListen: values["metrics-listen"], replay, manifest, stay, device: device || undefined },
    runId: values["run-id"],
    modelDir: values["model-dir"],
    generators: parseUrls(values.generators ?? ""),
    generatorsTls: values["generators-tls"] ?? needed("tls"),
    memoryBytes: byteCount(values["memory-bytes"]),
    terminationLog: values["termination-log"] ?? defaultTerminationLog(),
  };
}

function valuesOf(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS }).values;
  } catch (cause) {
    throw new ManifestError([(cause as Error).message.split(". ")[0]], { cause });
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
