/**
 * From an actor's messages to values. Actors are trusted to be ours, not to be free of bugs: every number, name and
 * size is checked here, and what does not fit is a ServerError `protocol`, which ends that one stream.
 */
import { type longrun, messages } from "../../proto/service.ts";
import type { AttemptKey, MarkerSeen, Result } from "../store/types.ts";
import { ServerError } from "./errors.ts";

export type Limits = longrun.v1alpha1.Limits.$Properties & {
  timeoutSeconds: number;
  memoryBytes: number;
  outputBytes: number;
  keptOutputBytes: number;
  submissionBytes: number;
};

const { Outcome } = messages;

const OUTCOMES = new Map<number, Result["outcome"]>([
  [Outcome.COMPLETED, "completed"],
  [Outcome.FAILED, "failed"],
  [Outcome.TIMED_OUT, "timedOut"],
  [Outcome.OUT_OF_MEMORY, "outOfMemory"],
  [Outcome.OUTPUT_LIMIT, "outputLimit"],
]);

/** Longest text of a person's line or of a marker's value. */
const LINE_CHARACTERS = 1000;

export function parseAttempt(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined): AttemptKey {
  const { execution, number, fence } = attempt ?? {};
  if (!execution || !number || !fence || execution.length > 200 || !/^\d{1,15}$/.test(fence))
    throw new ServerError("protocol", "an attempt without execution, number or fence");
  return { execution, number, fence };
}

function amount(value: number | null | undefined, name: string): number {
  const number = value ?? 0;
  if (!Number.isFinite(number) || number < 0) throw new ServerError("protocol", `${name} is ${number}`);
  return number;
}

const line = (text: string | null | undefined) => (text ?? "").slice(0, LINE_CHARACTERS);

/**
 * A result's header. Markers that were not inserted, or come twice, count as forged.
 * @returns undefined if the outcome is LOST: there is no result then
 */
export function parseResult(
  header: longrun.v1alpha1.ResultHeader.$Properties,
  insertedMarkers: readonly string[],
  limits: Limits,
): Result | undefined {
  if (header.outcome === Outcome.LOST) return undefined;
  const outcome = OUTCOMES.get(header.outcome ?? 0);
  if (outcome === undefined) throw new ServerError("protocol", `outcome ${header.outcome} is not one of longrun.proto`);
  const markers: MarkerSeen[] = [];
  let forgedMarkers = amount(header.forgedMarkers, "forged_markers");
  for (const { name, value, atSeconds } of header.markers ?? []) {
    const counts = insertedMarkers.includes(name ?? "") && !markers.some((seen) => seen.name === name);
    if (counts) markers.push({ name: name ?? "", value: line(value), atSeconds: amount(atSeconds, "at_seconds") });
    else forgedMarkers++;
  }
  const terminalOutput = header.terminalOutput ?? new Uint8Array();
  // First and last part, and a line between them that says what is missing.
  if (terminalOutput.length > 2 * limits.keptOutputBytes + 1024)
    throw new ServerError(
      "protocol",
      `terminal_output has ${terminalOutput.length} bytes, more than kept_output_bytes`,
    );
  return {
    outcome,
    exitStatus: header.exitStatus ?? 0,
    signal: header.signal ?? 0,
    durationSeconds: amount(header.durationSeconds, "duration_seconds"),
    cpuSeconds: amount(header.cpuSeconds, "cpu_seconds"),
    peakMemoryBytes: amount(header.peakMemoryBytes, "peak_memory_bytes"),
    markers,
    forgedMarkers,
    imitatedMarkers: amount(header.imitatedMarkers, "imitated_markers"),
    terminalOutput: new TextDecoder().decode(terminalOutput),
    outputBytes: amount(header.outputBytes, "output_bytes"),
    submissionRefused: line(header.submissionRefused),
    detail: line(header.detail),
    isolationLevel: line(header.isolationLevel),
  };
}
