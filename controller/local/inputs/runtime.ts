/** `--runtime FILE`: a run with the defaults of a TrainingRuntime, and within its limits. */
import { parseRuntime, runtimeProblems, type TrainingRuntime, withRuntime } from "../../../crds/runtime.ts";
import { ManifestError, type TrainingRun } from "../../../crds/trainingrun.ts";
import { readInput } from "../../read-input.ts";

/** Fields that only a cluster can honour; the others of a cluster are ignored here. */
const NOT_HERE = ["actors.isolation"];

/** @throws ManifestError | ControllerError `input` */
export function readRuntime(file: string | undefined): TrainingRuntime | undefined {
  return file === undefined ? undefined : parseRuntime(readInput(file, "--runtime "), file);
}

/**
 * Returns the run with the runtime's defaults, without its reference to the runtime.
 *
 * @param source name of the run's manifest in errors
 * @throws ManifestError if it names another runtime, or the runtime refuses it
 */
export function withRuntimeHere(run: TrainingRun, source: string, runtime: TrainingRuntime | undefined): TrainingRun {
  return runtime === undefined ? run : checked(run, source, runtime, { without: NOT_HERE, cluster: false });
}

/** Like `withRuntimeHere`, for a run on Kubernetes. */
export function checkRuntime(run: TrainingRun, source: string, runtime: TrainingRuntime): void {
  checked(run, source, runtime, { without: [], cluster: true });
}

function checked(
  { spec: { runtimeRef, ...spec }, ...run }: TrainingRun,
  source: string,
  { metadata: { name }, spec: defaults }: TrainingRuntime,
  { without, cluster }: { without: readonly string[]; cluster: boolean },
): TrainingRun {
  if (runtimeRef && runtimeRef.name !== name)
    throw new ManifestError([
      `${source}: spec.runtimeRef.name is ${runtimeRef.name}, and --runtime is TrainingRuntime ${name}; give the manifest of ${runtimeRef.name}`,
    ]);
  const own: TrainingRun = { ...run, spec };
  const whole = structuredClone(withRuntime(own, defaults, without));
  const problems = runtimeProblems(own, whole, defaults, { cluster });
  if (problems.length > 0)
    throw new ManifestError(
      problems.map((problem) => `${source}: TrainingRuntime ${name} does not allow it: ${problem}`),
    );
  return whole;
}
