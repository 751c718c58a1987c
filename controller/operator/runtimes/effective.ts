/**
 * The TrainingRuntime that a run uses now. It is kept like the run's images (pin.ts): from the learner's first answer until a suspension
 * the run uses what its status has; with `upgradePolicy: Immediately` it follows the object. A run whose runtime is deleted goes on with
 * what its status has, until it is suspended.
 */
import { type RuntimeSpec, runtimeProblems, type TrainingRuntime, withRuntime } from "../../../crds/runtime.ts";
import type { RuntimeStatus } from "../../../crds/trainingrun.ts";
import type { Run } from "../desired/names.ts";
import type { Settings } from "../desired/settings.ts";
import { type RunMemory, sliceOf } from "../memory.ts";
import type { Finding } from "../status/conditions.ts";
import type { Runtimes } from "./runtimes.ts";

/** Where a run's runtime is found. */
interface Around {
  runtimes: Pick<Runtimes, "get" | "refusal">;
  settings: Pick<Settings, "defaultRuntime">;
}

/** A runtime as it counts for a run. */
export interface Runtime {
  name: string;
  /** Differs for each state of each runtime. */
  version: string;
  spec: RuntimeSpec;
  status: RuntimeStatus;
}

/** The volume's class is no field of the merged run: a claim that exists keeps its class (parts/volume/desired.ts). */
const WITHOUT = ["learner.storage.className"];

/** Returns the name of the runtime that the run uses; undefined: none. */
export function runtimeNameOf({ spec }: Run, defaultRuntime: string | undefined): string | undefined {
  return spec.runtimeRef?.name ?? defaultRuntime;
}

/**
 * @param isPinned whether the run keeps what it was started with
 * @returns undefined if the run names no runtime, or there is none of this name
 */
export function runtimeOf(run: Run, { runtimes, settings }: Around, isPinned: boolean): Runtime | undefined {
  const name = runtimeNameOf(run, settings.defaultRuntime);
  if (name === undefined) return undefined;
  const { runtime } = run.status ?? {};
  const kept = runtime?.name === name && runtime.spec ? runtime : undefined;
  const found = runtimes.get(name);
  const used = (isPinned ? kept : undefined) ?? (found && statusOf(found)) ?? kept;
  return used && read(used);
}

const statusOf = ({ metadata: { name, uid = "", generation = 0 }, spec }: TrainingRuntime): RuntimeStatus => ({
  name,
  uid,
  generation,
  spec: spec as Record<string, unknown>,
});

const read = (status: RuntimeStatus): Runtime => ({
  name: status.name!,
  version: `${status.uid} ${status.generation}`,
  spec: (status.spec ?? {}) as RuntimeSpec,
  status,
});

/** Returns the run with its runtime's defaults. */
export function merged(run: Run, spec: RuntimeSpec | undefined): Run {
  return withRuntime(run, spec, WITHOUT);
}

interface Judged {
  of?: string;
  problems?: string[];
}
const JUDGED = { initial: (): Judged => ({}) };

/** Returns why no child of the run may be written: its runtime is missing, or refuses it. */
export function runtimeRefusal(
  run: Run,
  whole: Run,
  runtime: Runtime | undefined,
  { runtimes, settings, now }: Around & { now: () => number },
  memory: RunMemory,
): Finding | undefined {
  const name = runtimeNameOf(run, settings.defaultRuntime);
  if (name === undefined) return undefined;
  const place = run.spec.runtimeRef ? "spec.runtimeRef.name" : "the controller's default runtime";
  if (!runtime)
    return {
      reason: "RuntimeMissing",
      message:
        runtimes.refusal === undefined
          ? `${place} is ${name}: there is no TrainingRuntime of this name; create it, or name another (kubectl get trainingruntimes)`
          : `${place} is ${name}: the controller cannot read TrainingRuntimes (${runtimes.refusal}); install their CRD and let the controller get, list and watch them, or remove spec.runtimeRef`,
    };
  const judged = sliceOf<Judged>(memory, JUDGED, now());
  const of = `${run.metadata.generation} ${runtime.version}`;
  if (judged.of !== of)
    Object.assign(judged, { of, problems: runtimeProblems(run, whole, runtime.spec, { cluster: true }) });
  const problems = judged.problems!;
  if (problems.length === 0) return undefined;
  return {
    reason: "RuntimeRefuses",
    message: `TrainingRuntime ${name} does not allow it: ${problems.join("; ")}; change the field, or name another runtime (spec.runtimeRef)`,
  };
}
