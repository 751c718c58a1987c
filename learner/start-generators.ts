import { join } from "node:path";
import { type Device, readConfig, readEosIds } from "./engine/index.ts";
import { readPolicies } from "./evaluation/policies.ts";
import { Generators } from "./generators/generators.ts";
import { tell } from "./log.ts";
import type { Process } from "./process.ts";
import type { Run } from "./run.ts";

/** A run on one machine ends when rows wait and no generator could be used for so long; in a pod the learner waits. */
const NO_GENERATOR_SECONDS = 900;

/** Connects to the generators that the learner was given; undefined: there are none. */
export function startGenerators(
  { options, directory, status, log, suspension, signal }: Process,
  run: Pick<Run, "engine" | "phases" | "progress"> & { device: Device; policy: string },
): Generators | undefined {
  const none = options.generators.length === 0 || options.replay !== undefined || readPolicies(directory) !== undefined;
  if (none) return undefined;
  const { engine, phases, progress, device, policy } = run;
  const generators = new Generators({
    ...{ urls: options.generators, tlsDirectory: options.generatorsTls, engine, device: device.kind, log },
    ...{ eosIds: readEosIds(policy), vocabSize: readConfig(policy).vocabSize },
    directory: join(directory, "generators"),
    isCurrent: (version) => phases.isBetweenUpdates && progress.state.iteration === version,
    noGeneratorSeconds: options.stay ? Number.POSITIVE_INFINITY : NO_GENERATOR_SECONDS,
    tell: (text) => tell(log, text),
    onChange: () => status.changed(),
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  status.addSource(() => ({ generation: generators.status }));
  return generators;
}
