/** Describes how the engine spent the run's time. */
import { engineUse } from "../../proto/engine-seconds.ts";
import { percent } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";

/** Returns one paragraph for the report; empty if no line has the numbers. */
export function engineSentence(lines: readonly Pick<IterationMetrics, "engineSeconds">[]): string {
  const measured = lines.flatMap(({ engineSeconds }) => engineSeconds ?? []);
  const use = engineUse(measured);
  if (use === undefined) return "";
  const { generating, updating, idle, main } = use;
  const where =
    measured.length < lines.length ? ` in the ${measured.length} of ${lines.length} iterations that measured it` : "";
  const busy = `The engine was busy ${percent(generating + updating)} of the time${where}: ${percent(generating)} generating, ${percent(updating)} updating.`;
  if (main === undefined) return `${busy} It hardly idled.`;
  const mostly = percent(main.share) === percent(idle) ? "" : `, mostly (${percent(main.share)})`;
  return `${busy} It idled ${percent(idle)}${mostly} because ${main.because}: ${main.remedy}.`;
}
