/** The actor's command line. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ActorError } from "./errors.ts";
import { parseCpus, parseLevel, parseNumbers, pythonOf } from "./exec.ts";
import { shareGpus } from "./gpus.ts";
import type { SandboxOptions } from "./sandbox.ts";
import { shareCpus } from "./slots.ts";
import { findPublicData } from "./tasks.ts";

const OPTIONS = {
  learner: { type: "string" },
  tls: { type: "string" },
  name: { type: "string" },
  "run-id": { type: "string" },
  "task-dir": { type: "string" },
  python: { type: "string" },
  scratch: { type: "string" },
  sandboxes: { type: "string" },
  inputs: { type: "string" },
  slots: { type: "string", default: "1" },
  executions: { type: "string" },
  cpus: { type: "string" },
  gpus: { type: "string" },
  isolation: { type: "string" },
  warm: { type: "string" },
  "allow-no-isolation": { type: "boolean", default: false },
  "start-seconds": { type: "string", default: "120" },
  "restart-seconds": { type: "string" },
  "metrics-listen": { type: "string" },
} as const;

/** See main.ts. */
const FINISH_SECONDS = "LONGRUN_FINISH_SECONDS";
const OF_ONE_MACHINE = ["task-dir", "python", "scratch"] as const;
const OF_A_POD = ["sandboxes", "inputs"] as const;

/** @throws ActorError `arguments`, one line */
export function parseOptions(args: string[]) {
  let values: ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];
  try {
    values = parseArgs({ args, options: OPTIONS }).values;
  } catch (cause) {
    throw new ActorError("arguments", (cause as Error).message.split(". ")[0]!, cause);
  }
  const inPod = values.sandboxes !== undefined;
  for (const name of ["learner", "tls", "name", ...(inPod ? OF_A_POD : OF_ONE_MACHINE)] as const)
    if (!values[name]) throw new ActorError("arguments", `--${name} is missing`);
  for (const name of inPod ? ([...OF_ONE_MACHINE, "cpus", "gpus", "warm"] as const) : OF_A_POD)
    if (values[name] !== undefined)
      throw new ActorError("arguments", `--${name} does not go with ${inPod ? "" : "no "}--sandboxes`);
  const slots = Number(values.slots);
  if (!Number.isInteger(slots) || slots < 1 || slots > 256)
    throw new ActorError("arguments", `--slots is ${values.slots}, must be a whole number from 1 to 256`);
  const executions = values.executions === undefined ? undefined : Number(values.executions);
  if (executions !== undefined && !(Number.isInteger(executions) && executions >= 1))
    throw new ActorError("arguments", `--executions is ${values.executions}, must be a whole number from 1`);
  if (!/^.+:\d{1,5}$/.test(values.learner!))
    throw new ActorError("arguments", `--learner is ${values.learner}, must be HOST:PORT`);
  const finishSeconds = process.env[FINISH_SECONDS];
  return {
    inPod,
    finishSeconds: finishSeconds === undefined ? undefined : parseSeconds(FINISH_SECONDS, finishSeconds, 0),
    address: values.learner!,
    tlsDirectory: values.tls!,
    name: values.name!,
    runId: values["run-id"],
    environment: values.python ?? "",
    slots,
    maxExecutions: executions,
    level: parseLevel(values.isolation),
    allowNoIsolation: values["allow-no-isolation"]!,
    startSeconds: parseSeconds("--start-seconds", values["start-seconds"]!),
    restartSeconds: parseSeconds("--restart-seconds", values["restart-seconds"] ?? (inPod ? "600" : "60")),
    metricsListen: values["metrics-listen"],
    sandboxOf: inPod ? listening(values.sandboxes!, values.inputs!) : ownProcesses(values, slots),
  };
}

/** Returns the options of a slot's sandbox. Called at each start, because tasks may have been added. */
type SandboxOf = (slot: number) => Promise<SandboxOptions>;

function ownProcesses(
  values: { python?: string; scratch?: string; "task-dir"?: string; cpus?: string; gpus?: string; warm?: string },
  slots: number,
): SandboxOf {
  const cpus = parseCpus(values.cpus);
  const gpus = parseNumbers("gpus", values.gpus) ?? [];
  const python = pythonOf(values.python!);
  const warm = values.warm?.split(",").filter(Boolean);
  return async (slot) => ({
    python,
    warm,
    ...shareCpus(cpus, slot, slots),
    gpus: shareGpus(gpus, slot, slots),
    space: `${values.scratch}/slot-${slot}`,
    inputs: await findPublicData(values["task-dir"]!),
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
