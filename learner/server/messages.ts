/**
 * From an actor's messages to values. Whoever has an actor's certificate can send anything: every number, name, list and
 * size is checked against `BOUNDS`, and what does not fit is a ServerError `protocol`, which ends that one stream.
 */
import { ISOLATION_LEVELS, type IsolationLevel, MISSING_LAYERS } from "../../proto/isolation.ts";
import { type longrun, PROTOCOL_VERSION } from "../../proto/service.ts";
import type { AttemptKey } from "../store/types.ts";
import { ServerError } from "./errors.ts";

/** What one message may hold; README.md says it too. */
export const BOUNDS = {
  /** Characters of an execution's id. */
  executionCharacters: 200,
  /** Of one marker's name, a version, a package, a capability, a digest. */
  nameCharacters: 128,
  /** Of a line for a person, or what a program printed after a marker; what is longer is cut. */
  lineCharacters: 1000,
  versions: 64,
  packages: 4096,
  capabilities: 32,
  /** Of one attempt; there are seven kinds. */
  markers: 64,
  /** Any seconds: 30 years, with 256 slots. */
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

/** A number of at least 0 and at most `most`. @throws ServerError `protocol`, also for NaN and infinity */
export function amount(value: Numeric, name: string, most: number = BOUNDS.seconds): number {
  const number = Number(value ?? 0);
  return number >= 0 && number <= most ? number : refuse(`${name} is ${number}: it must be from 0 to ${most}`);
}

/** The same for whole numbers. */
export function whole(value: Numeric, name: string, most: number = BOUNDS.count): number {
  const number = amount(value, name, most);
  return Number.isSafeInteger(number) ? number : refuse(`${name} is ${number}: it must be whole`);
}

/** A line for a person, cut where it is too long. (A copy: a slice would keep all of the text in memory.) */
export function line(text: Text): string {
  const it = text ?? "";
  return it.length <= BOUNDS.lineCharacters ? it : Buffer.from(it.slice(0, BOUNDS.lineCharacters)).toString();
}

/** A name: no control characters, and not too long. */
function name(text: Text, what: string): string {
  const it = text ?? "";
  if (it.length > BOUNDS.nameCharacters)
    refuse(`${what} has ${it.length} characters, more than ${BOUNDS.nameCharacters}`);
  return /[\p{Cc}\p{Cs}]/u.test(it) ? refuse(`${what} has control characters`) : it;
}

function list<T>(items: readonly T[] | null | undefined, what: string, most: number): readonly T[] {
  const there = items ?? [];
  return there.length <= most ? there : refuse(`${there.length} ${what}, more than ${most}`);
}

function table(map: Record<string, string> | null | undefined, what: string, most: number): Record<string, string> {
  const entries = list(Object.entries(map ?? {}), what, most);
  return Object.fromEntries(entries.map(([key, value]) => [name(key, what), name(value, what)]));
}

export function parseIsolationLevel(level: Text): IsolationLevel {
  const known = ISOLATION_LEVELS.find((it) => it === level);
  return (
    known ??
    refuse(`isolation_level is '${(level ?? "").slice(0, 40)}': it must be one of ${ISOLATION_LEVELS.join(", ")}`)
  );
}

export function parseAttempt(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined): AttemptKey {
  const { execution, number, fence } = attempt ?? {};
  if (!execution || !number || !fence || execution.length > BOUNDS.executionCharacters || !/^\d{1,15}$/.test(fence))
    return refuse("an attempt without execution, number or fence");
  return { execution, number, fence };
}

/** An actor runs one attempt per slot and may hold as many finished ones that await their acknowledgement, or more. */
export const mostAttempts = (slots: number): number => 16 * slots + 64;

function parseAttempts(
  attempts: readonly (longrun.v1alpha1.Attempt.$Properties | null | undefined)[] | null | undefined,
  slots: number,
): AttemptKey[] {
  const there = attempts ?? [];
  if (there.length > mostAttempts(slots)) refuse(`${there.length} attempts on an actor with ${slots} slots`);
  return there.map(parseAttempt);
}

export interface Introduction {
  actor: string;
  slots: number;
  isolationLevel: IsolationLevel;
  isolationMissing: string[];
  pythonDigest: string;
  holding: AttemptKey[];
  versions: Record<string, string>;
  packages: Record<string, string>;
}

export function parseHello(hello: longrun.v1alpha1.Hello.$Properties, mostSlots: number): Introduction {
  const { actor = "", protocolVersion, slots } = hello;
  if (protocolVersion !== PROTOCOL_VERSION)
    refuse(
      `the actor speaks protocol ${protocolVersion}, this learner ${PROTOCOL_VERSION}: run the same version of both`,
    );
  if (!actor || !/^[A-Za-z0-9][-.A-Za-z0-9]{0,251}$/.test(actor))
    return refuse(`actor is '${actor?.slice(0, 80)}': letters, digits, dots and dashes only`);
  if (!slots || slots > mostSlots) return refuse(`slots is ${slots}: give 1 to ${mostSlots}`);
  for (const capability of list(hello.capabilities, "capabilities", BOUNDS.capabilities))
    name(capability, "capabilities");
  const missing = new Set<string>(list(hello.isolationMissing, "isolation_missing", BOUNDS.capabilities));
  return {
    ...{ actor, slots },
    isolationLevel: parseIsolationLevel(hello.isolationLevel),
    isolationMissing: MISSING_LAYERS.filter((layer) => missing.has(layer)),
    pythonDigest: name(hello.pythonDigest, "python_digest"),
    holding: parseAttempts(hello.holding, slots),
    versions: table(hello.versions, "versions", BOUNDS.versions),
    packages: table(hello.packages, "packages", BOUNDS.packages),
  };
}

export interface Beat {
  running: (AttemptKey & { elapsedSeconds: number })[];
  busySeconds: number;
  aliveSeconds: number;
}

export function parseHeartbeat(heartbeat: longrun.v1alpha1.Heartbeat.$Properties, slots: number): Beat {
  const running = heartbeat.running ?? [];
  const keys = parseAttempts(
    running.map(({ attempt }) => attempt),
    slots,
  );
  return {
    running: keys.map((key, index) => {
      const { elapsedSeconds, cpuSeconds, memoryBytes, markers } = running[index]!;
      amount(cpuSeconds, "cpu_seconds");
      whole(memoryBytes, "memory_bytes");
      for (const marker of list(markers, "markers", BOUNDS.markers)) name(marker, "markers");
      return { ...key, elapsedSeconds: amount(elapsedSeconds, "elapsed_seconds") };
    }),
    busySeconds: amount(heartbeat.busySeconds, "busy_seconds"),
    aliveSeconds: amount(heartbeat.aliveSeconds, "alive_seconds"),
  };
}

/** Of the marker lines that a program printed. */
export function parseMarkers(markers: longrun.v1alpha1.ResultHeader.$Properties["markers"]) {
  return list(markers, "markers", BOUNDS.markers).map(({ name: marker, value, atSeconds }) => ({
    name: name(marker, "a marker's name"),
    value: line(value),
    atSeconds: amount(atSeconds, "at_seconds"),
  }));
}
