/** The protocol between learner and generator: JSON and lines of JSON over HTTPS, and files. */
import { GeneratorError } from "./errors.ts";

export const PATHS = {
  state: "/longrun/v1/state",
  generate: "/longrun/v1/generate",
  /** followed by the policy version */
  weights: "/longrun/v1/weights/",
} as const;

/** Headers of a request that brings weights. */
export const HEADERS = {
  /** digest of the body, which names these weights, hexadecimal */
  digest: "x-longrun-sha256",
  /** JSON, `[{"name", "bytes"}]` in the order of the body */
  files: "x-longrun-files",
} as const;

/** Log-probs may exceed 0 by this much through rounding. */
export const ROUNDING = 0.01;

/** Limits of a request. */
export const LIMITS = {
  rows: 4096,
  bodyBytes: 256 * 1024 * 1024,
  files: 4096,
};

export type WeightsKind = "adapter" | "full";

/** Weights by number and content: a restarted learner may train other weights under the same number. */
export interface WeightsName {
  readonly policyVersion: number;
  /** SHA-256 of their files, hexadecimal */
  readonly digest: string;
}

export const isSame = (a: WeightsName | undefined, b: WeightsName): boolean =>
  a?.policyVersion === b.policyVersion && a.digest === b.digest;

export interface WeightsFile {
  readonly name: string;
  readonly bytes: number;
}

export interface GeneratorState {
  engine: "Longrun" | "VLLM";
  device: "cpu" | "cuda";
  /** null: there are no weights yet, or they are being loaded */
  policyVersion: number | null;
  digest: string | null;
  /** rows that it generates side by side */
  slots: number;
  running: number;
  waiting: number;
  /** it was asked to end, and takes no more rows */
  draining: boolean;
}

export interface RowRequest {
  id: string;
  /** token ids */
  prompt: number[];
  seed: number;
  temperature: number;
  topP: number;
  maxTokens: number;
  /** the row ends with the first of these, and includes it */
  stopTokens: number[];
}

export interface GenerateRequest extends WeightsName {
  rows: RowRequest[];
}

/** A row that has ended. */
export interface RowAnswer {
  id: string;
  tokens: number[];
  /** log pi/T of each token over the whole vocabulary, as it was drawn */
  logProbs: number[];
  finish: "stop" | "length";
  policyVersion: number;
}

/** The last line of an answer that an error ended. */
export interface FailedAnswer {
  error: { code: GeneratorError["code"]; message: string };
}

export type Fields = Record<string, unknown>;

const refuse = (what: string): never => {
  throw new GeneratorError("request", what);
};
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
export const areTokens = (value: unknown): value is number[] => Array.isArray(value) && value.every(isWhole);
const isDigest = (value: unknown): value is string => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

export function parseGenerate(json: unknown): GenerateRequest {
  const { policyVersion, digest, rows } = Object(json) as Fields;
  if (!isWhole(policyVersion)) return refuse(`policyVersion is ${policyVersion}: give a whole number`);
  if (!isDigest(digest)) return refuse(`digest is ${digest}: give the SHA-256 of the weights' files`);
  if (!Array.isArray(rows) || rows.length === 0 || rows.length > LIMITS.rows)
    return refuse(`rows must be a list of 1 to ${LIMITS.rows} rows`);
  for (const [i, each] of rows.entries()) checkRow(Object(each) as Fields, `rows[${i}]`);
  return { policyVersion, digest, rows: rows as RowRequest[] };
}

function checkRow(row: Fields, name: string): void {
  const number = (field: string, fits: (value: number) => boolean, what: string) => {
    const value = row[field];
    if (typeof value !== "number" || !fits(value)) refuse(`${name}.${field} is ${value}: give ${what}`);
  };
  if (typeof row.id !== "string") refuse(`${name}.id is ${row.id}: give a text`);
  for (const field of ["prompt", "stopTokens"] as const)
    if (!areTokens(row[field])) refuse(`${name}.${field} must be a list of token ids`);
  if ((row.prompt as number[]).length === 0) refuse(`${name}.prompt is empty: begin it with some token`);
  number("seed", Number.isSafeInteger, "a whole number");
  number("temperature", (value) => value >= 0 && Number.isFinite(value), "a number of at least 0");
  number("topP", (value) => value > 0 && value <= 1, "a number above 0, at most 1");
  number("maxTokens", (value) => isWhole(value) && value > 0, "a whole number of at least 1");
}

/** Returns the files of a request's header. @throws GeneratorError `request` */
export function parseFiles(header: unknown): WeightsFile[] {
  const files: unknown = typeof header === "string" ? parseJson(header, HEADERS.files) : undefined;
  const isFile = (file: Fields) =>
    typeof file.name === "string" && /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}$/.test(file.name) && isWhole(file.bytes);
  if (
    !Array.isArray(files) ||
    files.length === 0 ||
    files.length > LIMITS.files ||
    !files.every((f) => isFile(Object(f)))
  )
    return refuse(`the header ${HEADERS.files} must be a list of 1 to ${LIMITS.files} files, each with name and bytes`);
  return files as WeightsFile[];
}

/** A message of a generator that makes no sense is the generator's fault, not the row's. */
const senseless = (what: string): never => {
  throw new GeneratorError("failed", what);
};

/** Returns a generator's state from its answer. @throws GeneratorError `failed` */
export function parseState(text: string): GeneratorState {
  const state = Object(parseJson(text, "its state", "failed")) as Fields;
  const { engine, device, policyVersion, digest, slots, running, waiting, draining } = state;
  const known =
    (engine === "Longrun" || engine === "VLLM") &&
    (device === "cpu" || device === "cuda") &&
    (policyVersion === null || isWhole(policyVersion)) &&
    (digest === null || isDigest(digest)) &&
    [slots, running, waiting].every(isWhole) &&
    typeof draining === "boolean";
  return known ? (state as unknown as GeneratorState) : senseless(`its state is ${text.slice(0, 200)}`);
}

/** Returns a line of the answer to GenerateRequest. @throws GeneratorError `failed`, or the line's error */
export function parseAnswer(line: string): RowAnswer {
  const answer = Object(parseJson(line, "a row", "failed")) as Fields;
  if (answer.error !== undefined) throw parseError(answer);
  const { id, tokens, logProbs, finish, policyVersion } = answer;
  const known =
    typeof id === "string" &&
    areTokens(tokens) &&
    tokens.length > 0 &&
    Array.isArray(logProbs) &&
    logProbs.length === tokens.length &&
    logProbs.every((value) => typeof value === "number" && value <= ROUNDING) &&
    (finish === "stop" || finish === "length") &&
    isWhole(policyVersion);
  return known ? (answer as unknown as RowAnswer) : senseless(`its row is ${line.slice(0, 200)}`);
}

/** Returns the error that a generator answered with. */
export function parseError(answer: unknown): GeneratorError {
  const { code, message } = Object(Object(answer).error) as Fields;
  const known = (["none", "request", "version", "busy", "failed"] as const).find((each) => each === code);
  return new GeneratorError(known ?? "failed", typeof message === "string" ? message : "it did not say why it failed");
}

/** @param code the error's code: `request` for text from a learner, `failed` for text from a generator */
export function parseJson(text: string, what: string, code: "request" | "failed" = "request"): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new GeneratorError(code, `${what} is not JSON: ${(cause as Error).message}`, { cause });
  }
}
