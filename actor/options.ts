/** The actor's command line. */
import { join } from "node:path";
import { flagOf, parse, type Values } from "../proto/command-line.ts";
import { ActorError } from "./errors.ts";
import { parseCpus, parseLevel, pythonOf } from "./exec.ts";
import { shareGpus } from "./gpus.ts";
import type { SandboxOptions } from "./sandbox.ts";
import { shareCpus } from "./slots.ts";
import { findPublicData } from "./tasks.ts";

const OPTIONS = {
  "learner <HOST:PORT>": { help: "the learner's gRPC server", required: "HOST:PORT", as: addressOf },
  "tls <DIR>": { help: "folder with ca.crt, tls.crt and tls.key", required: "a folder with certificates" },
  "name <NAME>": { help: "the actor's name", required: "a name" },
  "run-id <ID>": "the run's id in log lines, the same as in the logs of learner and controller",
  "slots <N>": { help: "programs at once", default: "1", as: whole(256) },
  "executions <N>": {
    help: "the actor drains after this many leases; with 1 each execution has a pod of its own",
    as: whole(),
  },
  "isolation <LEVEL>": { help: "least level of isolation", as: parseLevel },
  "allow-no-isolation": "run programs without isolation where the machine allows none",
  "start-seconds <S>": { help: "longest wait for a sandbox at the start", default: "120", as: secondsOf },
  "restart-seconds <S>": {
    help: `longest wait for a broken sandbox, default 60, or 600 in a pod, where the kubelet pauses up to 300 s before it restarts a
container. The slot takes no lease while it waits; after this time the actor drains and exits 1`,
    as: secondsOf,
  },
  "metrics-listen <HOST:PORT>": "address of /metrics for Prometheus (default: no metrics)",
  // On one machine, where the actor starts its sandboxes:
  "task-dir <DIR>": "folder with tasks' public data",
  "python <VENV>": "virtual environment of the programs",
  "scratch <DIR>": "folder for the sandboxes",
  "cpus <LIST>": { help: "processors of the programs, such as 0,2-3", as: parseCpus },
  "gpus <LIST>": {
    help: `numbers of the NVIDIA GPUs that programs may use; 0 is /dev/nvidia0. Each slot has its own GPU if there are enough, else slots
share (default: none). In a pod programs use the GPUs of their container`,
    as: parseCpus,
  },
  "warm <MODULES>": "modules that sandboxes import before they run programs (default: WARM of sandbox/warm.py)",
  // In a pod, where each slot is a container (sandbox/listen.py):
  "sandboxes <DIR>": "the zygote of slot I listens at DIR/slot-I/control.sock",
  "inputs <TASK=PATH,…>": "paths of tasks' public data in the sandboxes",
} as const;

/** See main.ts. */
const FINISH_SECONDS = "LONGRUN_FINISH_SECONDS";
const OF_ONE_MACHINE = ["taskDir", "python", "scratch"] as const;
const ON_ONE_MACHINE_ALONE = [...OF_ONE_MACHINE, "cpus", "gpus", "warm"] as const;
const OF_A_POD = ["sandboxes", "inputs"] as const;

/** @throws ActorError `arguments`, UsageError */
export function parseOptions(args: string[]) {
  const { values } = parse({ name: "actor/main.ts", options: OPTIONS }, args);
  const inPod = values.sandboxes !== undefined;
  for (const name of inPod ? OF_A_POD : OF_ONE_MACHINE)
    if (!values[name]) throw new ActorError("arguments", `${flagOf(name)} is missing`);
  for (const name of inPod ? ON_ONE_MACHINE_ALONE : OF_A_POD)
    if (values[name] !== undefined)
      throw new ActorError("arguments", `${flagOf(name)} does not go with ${inPod ? "" : "no "}--sandboxes`);
  const finishSeconds = process.env[FINISH_SECONDS];
  return {
    inPod,
    finishSeconds: finishSeconds === undefined ? undefined : parseSeconds(FINISH_SECONDS, finishSeconds, 0),
    address: values.learner,
    tlsDirectory: values.tls,
    name: values.name,
    runId: values.runId,
    environment: values.python ?? "",
    slots: values.slots,
    maxExecutions: values.executions,
    level: values.isolation,
    allowNoIsolation: values.allowNoIsolation,
    startSeconds: values.startSeconds,
    restartSeconds: values.restartSeconds ?? (inPod ? 600 : 60),
    metricsListen: values.metricsListen,
    sandboxOf: inPod ? listening(values.sandboxes!, values.inputs!) : ownProcesses(values),
  };
}

function addressOf(text: string, option: string): string {
  if (/^.+:\d{1,5}$/.test(text)) return text;
  throw new ActorError("arguments", `${option} is ${text}, must be HOST:PORT`);
}

function whole(most?: number) {
  return (text: string, option: string): number => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= 1 && value <= (most ?? value)) return value;
    const to = most === undefined ? "" : ` to ${most}`;
    throw new ActorError("arguments", `${option} is ${text}, must be a whole number from 1${to}`);
  };
}

function secondsOf(text: string, option: string): number {
  return parseSeconds(option, text);
}

/** Returns the options of a slot's sandbox. Called at each start, because tasks may have been added. */
type SandboxOf = (slot: number) => Promise<SandboxOptions>;

function ownProcesses(values: Values<typeof OPTIONS>): SandboxOf {
  const { cpus, gpus = [], slots } = values;
  const python = pythonOf(values.python!);
  const warm = values.warm?.split(",").filter(Boolean);
  return async (slot) => ({
    python,
    warm,
    ...shareCpus(cpus, slot, slots),
    gpus: shareGpus(gpus, slot, slots),
    space: `${values.scratch}/slot-${slot}`,
    inputs: await findPublicData(values.taskDir!),
  });
}

function listening(directory: string, list: string): SandboxOf {
  const inputs = Object.fromEntries(
    list.split(",").map((entry) => {
      const [, task, path] = /^([^=]+)=(\/.*)$/.exec(entry) ?? [];
      if (!task || !path)
        throw new ActorError("arguments", `--inputs: "${entry}" is not TASK=PATH with an absolute path`);
      return [task, path];
    }),
  );
  return async (slot) => ({ socket: join(directory, `slot-${slot}`, "control.sock"), inputs });
}

function parseSeconds(name: string, text: string, least?: number): number {
  const seconds = Number(text);
  if (Number.isFinite(seconds) && (least === undefined ? seconds > 0 : seconds >= least)) return seconds;
  const must = least === undefined ? "above 0" : `from ${least}`;
  throw new ActorError("arguments", `${name} is ${text}, must be a number of seconds ${must}`);
}
