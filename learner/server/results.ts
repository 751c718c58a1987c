/** Result headers: from an actor's message to what the store keeps. See messages.ts. */
import type { Limits, MarkerSeen } from "../../proto/execution.ts";
import { type longrun, outcomeOf } from "../../proto/service.ts";
import type { ReportedResult } from "../store/types.ts";
import { amount, BOUNDS, line, parseIsolationLevel, parseMarkers, refuse, whole } from "./messages.ts";

export type ResultHeader = longrun.v1alpha1.ResultHeader.$Properties;

/** Returns a lost attempt's header, checked, and copied so that it keeps no long message in memory. */
export function boundedHeader(header: ResultHeader): ResultHeader {
  const { attempt, outcome, exitStatus, signal, durationSeconds, cpuSeconds, peakMemoryBytes } = header;
  const { forgedMarkers, imitatedMarkers, outputBytes, isolationLevel, slot, sandboxBroke, disrupted } = header;
  return {
    ...{ attempt, outcome, exitStatus, signal, durationSeconds, cpuSeconds, peakMemoryBytes },
    ...{ forgedMarkers, imitatedMarkers, outputBytes, isolationLevel, slot, sandboxBroke, disrupted },
    markers: parseMarkers(header.markers),
    terminalOutput: Uint8Array.from(header.terminalOutput ?? []),
    submissionRefused: line(header.submissionRefused),
    detail: line(header.detail),
  };
}

/**
 * Returns the result in a header; undefined if its outcome is LOST. Markers that were not inserted, or come twice,
 * count as forged.
 *
 * @param longestSeconds bound of the program's duration by the learner's own clock; CPU time is bounded by the duration
 *   of every process, a marker's time by the duration
 */
export function parseResult(
  header: ResultHeader,
  insertedMarkers: readonly string[],
  limits: Limits,
  longestSeconds: number,
): ReportedResult | undefined {
  const outcome = outcomeOf(header.outcome ?? 0);
  if (outcome === undefined) return refuse(`outcome ${header.outcome} is not one of longrun.proto`);
  const durationSeconds = Math.min(amount(header.durationSeconds, "duration_seconds"), Math.max(0, longestSeconds));
  const cpuSeconds = amount(header.cpuSeconds, "cpu_seconds");
  const markers: MarkerSeen[] = [];
  let forgedMarkers = whole(header.forgedMarkers, "forged_markers");
  for (const { name, value, atSeconds } of parseMarkers(header.markers)) {
    const counts = insertedMarkers.includes(name) && !markers.some((seen) => seen.name === name);
    if (counts) markers.push({ name, value, atSeconds: Math.min(atSeconds, durationSeconds) });
    else forgedMarkers++;
  }
  const terminalOutput = header.terminalOutput ?? new Uint8Array();
  // First and last part, and a line between them that says how much is missing.
  if (terminalOutput.length > 2 * limits.keptOutputBytes + 1024)
    refuse(`terminal_output has ${terminalOutput.length} bytes, more than kept_output_bytes`);
  const result = {
    exitStatus: whole(header.exitStatus, "exit_status", BOUNDS.exitStatus),
    signal: whole(header.signal, "signal", BOUNDS.signal),
    durationSeconds,
    cpuSeconds: Math.min(cpuSeconds, durationSeconds * limits.processes),
    peakMemoryBytes: whole(header.peakMemoryBytes, "peak_memory_bytes"),
    markers,
    forgedMarkers,
    imitatedMarkers: whole(header.imitatedMarkers, "imitated_markers"),
    terminalOutput: new TextDecoder().decode(terminalOutput),
    outputBytes: whole(header.outputBytes, "output_bytes"),
    submissionRefused: line(header.submissionRefused),
    detail: line(header.detail),
    isolationLevel: parseIsolationLevel(header.isolationLevel),
  };
  whole(header.slot, "slot", BOUNDS.count);
  return outcome === "lost" ? undefined : { outcome, ...result };
}
