/**
 * Parses an actor's messages. A client with a stolen certificate can send anything: every number, name, list and size is checked against
 * `BOUNDS`. A message out of bounds is a ServerError `protocol`, which ends only that stream.
 */
import type { Limits, MarkerSeen } from "../../proto/execution.ts";
import { ISOLATION_LEVELS, MISSING_LAYERS } from "../../proto/isolation.ts";
import { type longrun, outcomeOf, PROTOCOL_VERSION } from "../../proto/service.ts";
import type { AttemptKey, ReportedResult } from "../store/types.ts";
import { ServerError } from "./errors.ts";

/** Bounds of one message. */
const BOUNDS = {
  /** An execution's id. */
  executionCharacters: 200,
  /** A marker's name, a version, a package, a capability, a digest. */
  nameCharacters: 128,
  /** A line for people, or the text after a marker; a longer one is cut. */
  lineCharacters: 1000,
  versions: 64,
  packages: 4096,
  capabilities: 32,
  /** Number of one attempt's markers; there are seven kinds. */
  markers: 64,
  /** Any number of seconds: 30 years with 256 slots. */
  seconds: 256 * 1e9,
  /** Any count or size. */
  count: Number.MAX_SAFE_INTEGER,
  exitStatus: 255,
  signal: 64,
} as const;

type Text = string | null | undefined;
/** 64-bit fields are objects where protobufjs finds the package `long`. */
type Numeric = number | { toNumber(): number } | null | undefined;

export function refuse(message: string): never {
  throw new ServerError("protocol", message);
}

/** Returns a number from 0 to `most`. @throws ServerError `protocol`, also for NaN and infinity */
function amount(value: Numeric, name: string, most: number = BOUNDS.seconds): number {
  const number = Number(value ?? 0);
  return number >= 0 && number <= most ? number : refuse(`${name} is ${number}: it must be from 0 to ${most}`);
}

export function whole(value: Numeric, name: string, most: number = BOUNDS.count): number {
  const number = amount(value, name, most);
  return Number.isSafeInteger(number) ? number : refuse(`${name} is ${number}: it must be whole`);
}

/** Returns a line for people, cut to its bound. Copied, because a slice would keep the whole text in memory. */
function line(text: Text): string {
  const it = text ?? "";
  return it.length <= BOUNDS.lineCharacters ? it : Buffer.from(it.slice(0, BOUNDS.lineCharacters)).toString();
}

function name(text: Text, what: string): string {
  const it = text ?? "";
  if (it.length > BOUNDS.nameCharacters)
    refuse(`${what} has ${it.length} characters, more than ${BOUNDS.nameCharacters}`);
  return /[\p{Cc}\p{Cs}]/u.test(it) ? refuse(`${what} has control characters`) : it;
}

function list<T>(items: readonly T[] | null | undefined, what: string, most: number): readonly T[] {
  const given = items ?? [];
  return given.length <= most ? given : refuse(`${given.length} ${what}, more than ${most}`);
}

function table(map: Record<string, string> | null | undefined, what: string, most: number): Record<string, string> {
  const entries = list(Object.entries(map ?? {}), what, most);
  return Object.fromEntries(entries.map(([key, value]) => [name(key, what), name(value, what)]));
}

function parseIsolationLevel(level: Text): string {
  const known = ISOLATION_LEVELS.find((it) => it === level);
  if (known !== undefined) return known;
  return refuse(`isolation_level is '${(level ?? "").slice(0, 40)}': it must be one of ${ISOLATION_LEVELS.join(", ")}`);
}

export function parseAttempt(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined): AttemptKey {
  const { execution, number, fence } = attempt ?? {};
  if (!execution || !number || !fence || execution.length > BOUNDS.executionCharacters || !/^\d{1,15}$/.test(fence))
    return refuse("an attempt without execution, number or fence");
  return { execution, number, fence };
}

/** Bound for an actor's attempts: one runs in each slot, and several more may wait for acknowledgement. */
export const mostAttempts = (slots: number): number => 16 * slots + 64;

function parseAttempts(attempts: readonly Parameters<typeof parseAttempt>[0][], slots: number): AttemptKey[] {
  if (attempts.length > mostAttempts(slots)) refuse(`${attempts.length} attempts on an actor with ${slots} slots`);
  return attempts.map(parseAttempt);
}

export type Introduction = ReturnType<typeof parseHello>;

export function parseHello(hello: longrun.v1alpha1.Hello.$Properties, mostSlots: number) {
  const { actor = "", protocolVersion, slots } = hello;
  const versions = `the actor speaks protocol ${protocolVersion}, this learner ${PROTOCOL_VERSION}`;
  if (protocolVersion !== PROTOCOL_VERSION) refuse(`${versions}: run the same version of both`);
  if (!actor || !/^[A-Za-z0-9][-.A-Za-z0-9]{0,251}$/.test(actor))
    return refuse(`actor is '${actor?.slice(0, 80)}': letters, digits, dots and dashes only`);
  if (!slots || slots > mostSlots) return refuse(`slots is ${slots}: give 1 to ${mostSlots}`);
  for (const capability of list(hello.capabilities, "capabilities", BOUNDS.capabilities))
    name(capability, "capabilities");
  name(hello.pythonDigest, "python_digest");
  const missing = new Set<string>(list(hello.isolationMissing, "isolation_missing", BOUNDS.capabilities));
  return {
    actor,
    slots,
    isolationLevel: parseIsolationLevel(hello.isolationLevel),
    isolationMissing: MISSING_LAYERS.filter((layer) => missing.has(layer)),
    holding: parseAttempts(hello.holding ?? [], slots),
    versions: table(hello.versions, "versions", BOUNDS.versions),
    packages: table(hello.packages, "packages", BOUNDS.packages),
  };
}

export function parseHeartbeat(heartbeat: longrun.v1alpha1.Heartbeat.$Properties, slots: number) {
  const running = heartbeat.running ?? [];
  const attempts = running.map(({ attempt }) => attempt);
  return {
    running: parseAttempts(attempts, slots).map((key, index) => {
      const { elapsedSeconds, cpuSeconds, memoryBytes, markers } = running[index];
      amount(cpuSeconds, "cpu_seconds");
      whole(memoryBytes, "memory_bytes");
      for (const marker of list(markers, "markers", BOUNDS.markers)) name(marker, "markers");
      return { ...key, elapsedSeconds: amount(elapsedSeconds, "elapsed_seconds") };
    }),
    busySeconds: amount(heartbeat.busySeconds, "busy_seconds"),
    aliveSeconds: amount(heartbeat.aliveSeconds, "alive_seconds"),
  };
}

function parseMarkers(markers: ResultHeader["markers"]) {
  return list(markers, "markers", BOUNDS.markers).map(({ name: marker, value, atSeconds }) => ({
    name: name(marker, "a marker's name"),
    value: line(value),
    atSeconds: amount(atSeconds, "at_seconds"),
  }));
}

export type ResultHeader = longrun.v1alpha1.ResultHeader.$Properties;

/** Returns a lost attempt's header, checked, and copied so that it does not keep a long message in memory. */
export function boundedHeader(header: ResultHeader): ResultHeader {
  const { attempt, outcome, exitStatus, signal, durationSeconds, cpuSeconds, peakMemoryBytes } = header;
  const { forgedMarkers, imitatedMarkers, outputBytes, isolationLevel, slot, sandboxBroke, disrupted } = header;
  return {
    attempt,
    outcome,
    exitStatus,
    signal,
    durationSeconds,
    cpuSeconds,
    peakMemoryBytes,
    forgedMarkers,
    imitatedMarkers,
    outputBytes,
    isolationLevel,
    slot,
    sandboxBroke,
    disrupted,
    markers: parseMarkers(header.markers),
    terminalOutput: Uint8Array.from(header.terminalOutput ?? []),
    submissionRefused: line(header.submissionRefused),
    detail: line(header.detail),
  };
}

/**
 * Returns the result in a header; undefined if its outcome is LOST. Markers that were not inserted, or that are repeated, count as forged.
 *
 * @param longestSeconds bounds the duration by the learner's own clock; the duration bounds CPU time and markers' times
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
  // First and last part, with a line between them that says how much is missing.
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
