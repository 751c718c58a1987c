/** The learner's command line. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { ManifestError } from "../crds/trainingrun.ts";

export interface Options {
  /** The run folder. */
  run: string;
  /** What log lines call the run, as the controller's do; absent: its name. */
  runId: string | undefined;
  /** `HOST:PORT` of the gRPC server; port 0 is any free one. */
  listen: string;
  /** `HOST:PORT` of `/report`, `/metrics`, `/healthz` and `/readyz`. */
  metricsListen: string;
  /** Folder with ca.crt, tls.crt, tls.key; may change while the process runs. */
  tls: string;
  /** Folder of the task, with its answers. */
  taskDir: string;
  /** Store of an earlier run whose batches and results are used again. */
  replay: string | undefined;
  /** A manifest that is newer than the run folder's own and takes its place. */
  manifest: string | undefined;
  /** Where a relative `spec.model.policy` starts from: the mount of `spec.model.volume`. */
  modelDir: string;
  /** `auto`, `cpu`, `cuda` or `cuda:N`; undefined: `spec.learner.device`. */
  device: string | undefined;
  /** What the run may take of its device's memory; undefined: what is free. */
  memoryBytes: number | undefined;
  /** After the end of the run, status and metrics are served on until SIGTERM. */
  stay: boolean;
  /** Where one line says why the process ended, for the container's status. */
  terminationLog: string | undefined;
}

/** Kubernetes mounts a container's termination message file here. */
const TERMINATION_LOG = "/dev/termination-log";

/** @throws ManifestError, one line */
export function parseOptions(args: string[]): Options {
  const values = (() => {
    try {
      return parseArgs({
        args,
        options: {
          run: { type: "string" },
          listen: { type: "string", default: "127.0.0.1:0" },
          "metrics-listen": { type: "string", default: "127.0.0.1:0" },
          tls: { type: "string" },
          "task-dir": { type: "string" },
          "run-id": { type: "string" },
          replay: { type: "string" },
          manifest: { type: "string" },
          "model-dir": { type: "string", default: "/model" },
          device: { type: "string", default: process.env.LONGRUN_DEVICE },
          "memory-bytes": { type: "string", default: process.env.LONGRUN_MEMORY_BYTES },
          stay: { type: "boolean", default: false },
          "termination-log": { type: "string" },
        },
      }).values;
    } catch (cause) {
      throw new ManifestError([(cause as Error).message.split(". ")[0]!], { cause });
    }
  })();
  const needed = (name: "run" | "tls" | "task-dir") => {
    const value = values[name];
    if (value === undefined) throw new ManifestError([`--${name} is missing`]);
    return value;
  };
  return {
    run: needed("run"),
    runId: values["run-id"],
    listen: values.listen,
    metricsListen: values["metrics-listen"],
    tls: needed("tls"),
    taskDir: needed("task-dir"),
    replay: values.replay,
    manifest: values.manifest,
    modelDir: values["model-dir"],
    device: values.device || undefined,
    memoryBytes: byteCount(values["memory-bytes"]),
    stay: values.stay,
    terminationLog: values["termination-log"] ?? defaultTerminationLog(),
  };
}

function byteCount(text: string | undefined): number | undefined {
  if (!text) return undefined;
  if (/^\d+$/.test(text) && Number(text) > 0) return Number(text);
  throw new ManifestError([`--memory-bytes (LONGRUN_MEMORY_BYTES) is ${text}; give a number of bytes`]);
}

/** Undefined outside of a container: nobody would read it. */
export const defaultTerminationLog = (): string | undefined =>
  existsSync(TERMINATION_LOG) ? TERMINATION_LOG : undefined;
