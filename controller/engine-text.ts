import { type EngineSeconds, engineUse } from "../proto/engine-seconds.ts";

/**
 * Returns what the learner's engine did in some iterations together, and the remedy of its main reason to idle, e.g.
 * `41% generating, 37% updating, 22% idle (executions waited for an actor: raise actors.max or actors.slots)`.
 *
 * @returns undefined where no iteration knows it: learners of 0.2 do not measure it
 */
export function engineText(iterations: readonly (Partial<EngineSeconds> | undefined)[]): string | undefined {
  const use = engineUse(iterations);
  if (use === undefined) return undefined;
  const [generating, updating] = [percent(use.generating), percent(use.updating)];
  // What was rounded away of the others is not missing: the three add up to 100.
  const idle = 100 - generating - updating;
  const why = use.main ? ` (${use.main.because}: ${use.main.remedy})` : "";
  return `${generating}% generating, ${updating}% updating, ${idle}% idle${why}`;
}

const percent = (share: number) => Math.round(100 * share);
