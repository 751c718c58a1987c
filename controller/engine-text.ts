import { type EngineSeconds, engineUse } from "../proto/engine-seconds.ts";

/**
 * Returns the engine's use of time in some iterations, and the remedy for its main reason to idle, e.g. `41% generating, 37% updating, 22%
 * idle (executions waited for an actor: raise actors.max or actors.slots)`.
 *
 * @returns undefined if no iteration has the numbers: learners of 0.2 do not measure them
 */
export function engineText(iterations: readonly (Partial<EngineSeconds> | undefined)[]): string | undefined {
  const use = engineUse(iterations);
  if (use === undefined) return undefined;
  const [generating, updating] = [percent(use.generating), percent(use.updating)];
  // The remainder, so that the three rounded numbers add up to 100.
  const idle = 100 - generating - updating;
  const why = use.main ? ` (${use.main.because}: ${use.main.remedy})` : "";
  return `${generating}% generating, ${updating}% updating, ${idle}% idle${why}`;
}

const percent = (share: number) => Math.round(100 * share);
