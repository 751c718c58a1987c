/**
 * Checks a learner's status message. A learner runs the image that the run names, so its messages are untrusted. This file alone
 * reads the received message, and reads each field once, with its limits. An invalid field is left out and named in `nonsense`; the
 * other fields count. The controller therefore sees that a learner has ended whatever else its message says. A status that is
 * derived from the checked value always passes the CRD's schema. Pure.
 */
import type {
  CheckpointStatus,
  EvaluatedPolicyStatus,
  EvaluationStatus,
  TaskStatus,
} from "../../../../crds/trainingrun.ts";
import { ENGINE_USES, type EngineSeconds } from "../../../../proto/engine-seconds.ts";
import { messages, type PhaseName, type StatusReceived } from "../../../../proto/service.ts";

/** The learner's reasons for having no results. */
const BLOCKS = ["NoActors", "NoFreeSlots", "Executing", "Draining"] as const;

export interface LearnerStatus {
  /** Undefined: the controller does not know the phase. */
  phase: PhaseName | undefined;
  /** The running iteration, from 1. */
  iteration: number;
  /** Undefined: the learner has not reported them. */
  executions:
    | { queued: number; running: number; completed: number; lost: number; retried: number; disrupted: number }
    | undefined;
  actors: LearnerActor[];
  /** Undefined: the learner writes solutions itself. */
  generation: { waitingPrompts: number; generators: LearnerGenerator[] } | undefined;
  /** The newest finished iteration; undefined before the first. */
  finished: ReportedIteration | undefined;
  /** Results of the evaluations; undefined before the end of the first one, and if the run has several tasks. */
  evaluation: EvaluationStatus | undefined;
  /** Evaluations by task name, if the run has several tasks. */
  evaluations: Map<string, EvaluationStatus>;
  checkpoint: Required<CheckpointStatus> | undefined;
  /** For a person. */
  message: string;
  blocked: (typeof BLOCKS)[number] | undefined;
  /** Time since which there is no result, in Unix milliseconds; learners of 0.2 do not report it. */
  blockedSinceMs: number | undefined;
  /** The first field that was left out: its name, its value and the requirement. */
  nonsense: string | undefined;
}

interface LearnerActor {
  name: string;
  connected: boolean;
  draining: boolean;
  /** Executions that it runs. */
  running: number;
}

interface LearnerGenerator {
  address: string;
  ready: boolean;
  /** Undefined: it has no weights of the run yet. */
  policyVersion: number | undefined;
  /** Solutions that it writes. */
  running: number;
  /** Empty: the learner uses it. */
  notUsedBecause: string;
}

/** The metrics of an iteration that the status shows; see learner/metrics/README.md. */
export interface ReportedIteration {
  iteration: number;
  lineage: number;
  elapsedSeconds: number | undefined;
  bestScore: number | undefined;
  meanScore: number | undefined;
  meanNormalizedScore: number | undefined;
  validFraction: number | undefined;
  tasks: ReportedTask[];
  meanDurationSeconds: number | undefined;
  /** Iterations in a row whose rewards were all alike; older learners do not report it. */
  noSignalIterations: number | undefined;
  /** Seconds of engine time by use; learners of 0.2 do not report it. */
  engineSeconds: Partial<EngineSeconds> | undefined;
}

export type ReportedTask = Required<Pick<TaskStatus, "name">> & Omit<TaskStatus, "evaluation">;

/** The largest number of `spec.tasks`. */
const MAX_TASKS = 16;
/** Longest name of a task. */
const MAX_TASK_CHARACTERS = 63;
/** Maximum of the CRD's int32. */
const MAX_INT32 = 2 ** 31 - 1;
/** A hundred years: no run and no program takes longer, and a date that far can still be written. */
const MAX_SECONDS = 100 * 365 * 24 * 3600;
/** Longest `iterationJson` and `evaluationJson`; they usually have some thousand characters. */
const MAX_JSON_CHARACTERS = 64 * 1024;
/** The largest `spec.actors.max`. */
const MAX_ACTORS = 10_000;
/** The largest `spec.generation.replicas.max`, twice: a generator is known until its pod has ended. */
const MAX_GENERATORS = 512;
/** Maximum length of a Kubernetes name. */
const MAX_NAME_CHARACTERS = 253;
/** Longest message for a person; its end is kept. */
const MAX_MESSAGE_CHARACTERS = 4096;
/** The CRD's limits of `status.checkpoint`. */
const MAX_PATH_CHARACTERS = 4096;
const MAX_DIGEST_CHARACTERS = 64;
/** Characters of a value that `nonsense` quotes. */
const SHOWN_CHARACTERS = 60;

const COUNT = { min: 0, max: MAX_INT32, integer: true };
const TOTAL = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true };
/** Unix milliseconds of a date that can be written. */
const TIME = { min: 0, max: 8.64e15, integer: true };
const SECONDS = { min: 0, max: MAX_SECONDS };
const SHARE = { min: 0, max: 1 };
const SCORE = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE };
type Range = { min: number; max: number; integer?: boolean };

export function parseLearnerStatus(received: StatusReceived): LearnerStatus {
  const reader = new Reader();
  const { phase, iteration, executions, actors, iterationJson, evaluationJson, checkpoint, message } = received;
  const { blocked, blockedSinceUnixMs } = received;
  return {
    phase: reader.oneOf("phase", messages.Phase[phase], Object.keys(messages.Phase) as PhaseName[], phase),
    iteration: reader.number("iteration", iteration, COUNT) ?? 0,
    executions: executions ? executionsOf(executions, reader) : undefined,
    actors: actorsOf(actors ?? [], reader),
    generation: received.generation ? generationOf(received.generation, reader) : undefined,
    finished: finishedOf(iterationJson, reader),
    ...evaluationsOf(evaluationJson, reader),
    checkpoint: checkpointOf(checkpoint, reader),
    message: (message ?? "").slice(-MAX_MESSAGE_CHARACTERS),
    blocked: reader.oneOf("blocked", blocked || undefined, BLOCKS),
    blockedSinceMs: reader.number("blockedSinceUnixMs", blockedSinceUnixMs, TIME) || undefined,
    nonsense: reader.nonsense,
  };
}

/** Returns the checkpoint of an answer to Suspend; undefined if there is none, or if it is invalid. */
export function parseCheckpoint(checkpoint: StatusReceived["checkpoint"]): LearnerStatus["checkpoint"] {
  return checkpointOf(checkpoint, new Reader());
}

/** Reads untrusted values, and remembers the first invalid one. */
class Reader {
  nonsense: string | undefined;

  /** @returns undefined */
  drop(field: string, value: unknown, must: string): undefined {
    let text = JSON.stringify(value) ?? String(value);
    if (text.length > SHOWN_CHARACTERS) text = `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}…`;
    this.nonsense ??= `${field} is ${text}, must be ${must}`;
  }

  /** Absent and null are no number. With the package `long`, protobufjs represents 64-bit numbers as objects. */
  number(field: string, value: unknown, { min, max, integer = false }: Range): number | undefined {
    if (value === undefined || value === null) return undefined;
    const number = typeof value === "number" ? value : isLong(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max && (!integer || Number.isInteger(number))) return number;
    const bounds = max === SCORE.max ? "" : ` from ${min} to ${max}`;
    return this.drop(field, number === value ? number : value, `${integer ? "an integer" : "a number"}${bounds}`);
  }

  oneOf<T extends string>(field: string, value: unknown, known: readonly T[], shown = value): T | undefined {
    if (shown === undefined || shown === null) return undefined;
    return known.includes(value as T) ? (value as T) : this.drop(field, shown, `one of ${known.join(", ")}`);
  }

  /** An object in JSON; undefined for the empty text. */
  json(field: string, text: string | null | undefined): Record<string, unknown> | undefined {
    if (!text) return undefined;
    if (text.length > MAX_JSON_CHARACTERS)
      return this.drop(field, text, `at most ${MAX_JSON_CHARACTERS} characters, and has ${text.length}`);
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {} // dropped below
    return this.drop(field, text, "a JSON object");
  }
}

function isLong(value: unknown): boolean {
  return typeof value === "object" && value !== null && "low" in value && "high" in value;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns undefined if any count is invalid: the demand for actors is the sum of all. */
function executionsOf(said: object, reader: Reader): LearnerStatus["executions"] {
  const numberOf = (name: string, range: Range) => {
    const value = (said as Record<string, unknown>)[name] ?? 0;
    return reader.number(`executions.${name}`, value, range);
  };
  const [queued, running] = [numberOf("queued", COUNT), numberOf("running", COUNT)];
  const [completed, lost, retried, disrupted] = ["completed", "lost", "retried", "disrupted"].map((it) =>
    numberOf(it, TOTAL),
  );
  if (queued === undefined || running === undefined) return undefined;
  if (completed === undefined || lost === undefined || retried === undefined || disrupted === undefined)
    return undefined;
  return { queued, running, completed, lost, retried, disrupted };
}

function actorsOf(said: NonNullable<StatusReceived["actors"]>, reader: Reader): LearnerActor[] {
  if (said.length > MAX_ACTORS) reader.drop("actors", said.length, `at most ${MAX_ACTORS}`);
  return said.slice(0, MAX_ACTORS).flatMap(({ name, connected, draining, running }) => {
    if (!name || name.length > MAX_NAME_CHARACTERS) {
      reader.drop("actors[].name", name, `1 to ${MAX_NAME_CHARACTERS} characters`);
      return [];
    }
    const executions = reader.number("actors[].running", running ?? 0, COUNT);
    return [{ name, connected: connected ?? false, draining: draining ?? false, running: executions ?? 0 }];
  });
}

/** Leaves out a generator without a valid address, because nobody could find it. */
function generationOf(
  { waitingPrompts, generators }: NonNullable<StatusReceived["generation"]>,
  reader: Reader,
): LearnerStatus["generation"] {
  const said = generators ?? [];
  if (said.length > MAX_GENERATORS) reader.drop("generation.generators", said.length, `at most ${MAX_GENERATORS}`);
  const field = "generation.generators[]";
  return {
    waitingPrompts: reader.number("generation.waitingPrompts", waitingPrompts ?? 0, COUNT) ?? 0,
    generators: said.slice(0, MAX_GENERATORS).flatMap(({ address, ready, policyVersion, running, notUsedBecause }) => {
      if (!address || address.length > MAX_NAME_CHARACTERS) {
        reader.drop(`${field}.address`, address, `1 to ${MAX_NAME_CHARACTERS} characters`);
        return [];
      }
      return [
        {
          address,
          ready: ready ?? false,
          policyVersion: reader.number(`${field}.policyVersion`, policyVersion, TOTAL),
          running: reader.number(`${field}.running`, running ?? 0, COUNT) ?? 0,
          notUsedBecause: (notUsedBecause ?? "").slice(0, MAX_MESSAGE_CHARACTERS),
        },
      ];
    }),
  };
}

function finishedOf(json: string | null | undefined, reader: Reader): ReportedIteration | undefined {
  const line = reader.json("iterationJson", json);
  if (!line || Object.keys(line).length === 0) return undefined;
  const numberOf = (name: string, range: Range) => reader.number(`iterationJson.${name}`, line[name], range);
  const [iteration, lineage] = [numberOf("iteration", COUNT), numberOf("lineage", TOTAL)];
  if (iteration === undefined || lineage === undefined)
    return reader.drop("iterationJson", json, "a line with iteration and lineage");
  const tasks = tasksOf(line.tasks, reader);
  return {
    iteration,
    lineage,
    elapsedSeconds: numberOf("elapsedSeconds", SECONDS),
    tasks,
    bestScore: numberOf("bestScoreSoFar", SCORE) ?? (tasks.length === 1 ? tasks[0]!.best : undefined),
    meanScore: numberOf("meanScore", SCORE),
    validFraction: numberOf("validFraction", SHARE),
    meanNormalizedScore: numberOf("meanNormalizedScore", SHARE),
    meanDurationSeconds: numberOf("meanDurationSeconds", SECONDS),
    noSignalIterations: numberOf("noSignalIterations", COUNT),
    engineSeconds: engineOf(line.engineSeconds, reader),
  };
}

function engineOf(said: unknown, reader: Reader): Partial<EngineSeconds> | undefined {
  const field = "iterationJson.engineSeconds";
  if (said === undefined || said === null) return undefined;
  if (!isObject(said)) return reader.drop(field, said, "an object");
  const uses = ENGINE_USES.map((use) => [use, reader.number(`${field}.${use}`, said[use], SECONDS)] as const);
  const known = uses.filter(([, seconds]) => seconds !== undefined);
  return known.length > 0 ? Object.fromEntries(known) : undefined;
}

/** Returns the entries of a field whose keys are task names. */
function byTask(field: string, said: unknown, reader: Reader): [name: string, value: Record<string, unknown>][] {
  if (said === undefined || said === null) return [];
  if (!isObject(said) || Object.keys(said).length > MAX_TASKS)
    return reader.drop(field, said, `an object of at most ${MAX_TASKS} tasks`) ?? [];
  return Object.entries(said).flatMap(([name, value]) => {
    if (isObject(value) && name !== "" && name.length <= MAX_TASK_CHARACTERS) return [[name, value]];
    return (
      reader.drop(`${field}.${name}`, value, `an object, of a name of at most ${MAX_TASK_CHARACTERS} characters`) ?? []
    );
  });
}

function tasksOf(said: unknown, reader: Reader): ReportedTask[] {
  return byTask("iterationJson.tasks", said, reader).map(([name, task]) => {
    const numberOf = (field: string, range: Range) =>
      reader.number(`iterationJson.tasks.${name}.${field}`, task[field], range);
    const numbers = {
      samples: numberOf("samples", COUNT),
      best: numberOf("bestScoreSoFar", SCORE),
      mean: numberOf("meanScore", SCORE),
      validFraction: numberOf("validFraction", SHARE),
    };
    const known = Object.entries(numbers).filter(([, value]) => value !== undefined);
    return { name, ...Object.fromEntries(known) };
  });
}

function evaluationsOf(json: string | null | undefined, reader: Reader) {
  const said = reader.json("evaluationJson", json);
  const tasks = byTask("evaluationJson.tasks", said?.tasks, reader).flatMap(([name, each]) => {
    const evaluation = evaluationOf(each, `evaluationJson.tasks.${name}`, reader);
    return evaluation ? [[name, evaluation] as const] : [];
  });
  return { evaluation: said && evaluationOf(said, "evaluationJson", reader), evaluations: new Map(tasks) };
}

/** Returns the results of an evaluation; null means that there is no number. */
function evaluationOf(said: Record<string, unknown>, field: string, reader: Reader): EvaluationStatus | undefined {
  const protocol = reader.oneOf(`${field}.protocol`, said.protocol, ["Paper", "Equal", "Scratch"] as const);
  const policyAt = (when: string) => policyOf(`${field}.${when}`, said[when], reader);
  const [before, after] = [policyAt("before"), policyAt("after")];
  if (!before && !after) return undefined;
  return { ...(protocol && { protocol }), ...(before && { before }), ...(after && { after }) };
}

const POLICY_NUMBERS = {
  iteration: COUNT,
  samples: COUNT,
  validFraction: SHARE,
  mean: SCORE,
  best: SCORE,
  bestFromScratch: SCORE,
  bestImproved: SCORE,
  medalFraction: SHARE,
  aboveMedianFraction: SHARE,
} satisfies Partial<Record<keyof EvaluatedPolicyStatus, Range>>;

function policyOf(field: string, said: unknown, reader: Reader): EvaluatedPolicyStatus | undefined {
  if (said === undefined || said === null) return undefined;
  if (!isObject(said)) return reader.drop(field, said, "an object");
  const policy: EvaluatedPolicyStatus = {};
  for (const [name, range] of Object.entries(POLICY_NUMBERS)) {
    const value = reader.number(`${field}.${name}`, said[name], range);
    if (value !== undefined) policy[name as keyof typeof POLICY_NUMBERS] = value;
  }
  const bestMedal = reader.oneOf(`${field}.bestMedal`, said.bestMedal, ["gold", "silver", "bronze"] as const);
  if (policy.iteration === undefined || policy.samples === undefined)
    return reader.drop(field, said, "an object with iteration and samples");
  return { ...policy, ...(bestMedal && { bestMedal }) };
}

function checkpointOf(said: StatusReceived["checkpoint"], reader: Reader): LearnerStatus["checkpoint"] {
  if (!said?.path) return undefined;
  const { path } = said;
  const digest = said.digest ?? "";
  const iteration = reader.number("checkpoint.iteration", said.iteration ?? 0, COUNT);
  if (path.length > MAX_PATH_CHARACTERS)
    return reader.drop("checkpoint.path", path, `at most ${MAX_PATH_CHARACTERS} characters`);
  if (digest.length > MAX_DIGEST_CHARACTERS)
    return reader.drop("checkpoint.digest", digest, `at most ${MAX_DIGEST_CHARACTERS} characters`);
  return iteration === undefined ? undefined : { iteration, digest, path };
}
