import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Ajv } from "ajv";
import fc from "fast-check";
import { readSchema } from "../../../../crds/schema.ts";
import { messages, type StatusMessage, type StatusReceived } from "../../../../proto/service.ts";
import { actorOf, linkOf, NOW_MS, observedOf, runOf } from "../../run.fixture.ts";
import { statusFrom } from "../../status/status.fixture.ts";
import type { Stage } from "../lifecycle/lifecycle.ts";
import { parseCheckpoint, parseLearnerStatus } from "./learner-status.ts";

const { Phase, Status } = messages;
const parse = (said: StatusMessage) =>
  parseLearnerStatus(Status.decode(Status.encode(said).finish()) as StatusReceived);
const LINE = {
  ...{ iteration: 4, lineage: 2, elapsedSeconds: 400, bestScoreSoFar: 812.5, meanScore: 900, validFraction: 0.5 },
  ...{ meanDurationSeconds: 2, engineSeconds: { generating: 30, updating: 20, idleActors: 0.5 } },
};
const line = (change: object = {}) => ({ iterationJson: JSON.stringify({ ...LINE, ...change }) });
const POLICY = { iteration: 0, samples: 48, validFraction: 0.75, best: 308.25, mean: 1207.5 };
const evaluation = (change: object) => ({ evaluationJson: JSON.stringify({ protocol: "Paper", ...change }) });

test("A valid status is read whole", () => {
  const status = parse({
    ...{ phase: Phase.EXECUTING, iteration: 5, blocked: "NoActors", message: "m", ...line() },
    blockedSinceUnixMs: NOW_MS,
    ...evaluation({ before: { ...POLICY, bestMedal: null, medalFraction: null } }),
    executions: { queued: 1, running: 2, completed: 3, lost: 4, retried: 5, disrupted: 6 },
    actors: [{ name: "quick-actor-0-0", slots: 2, running: 1, connected: true }],
    generation: {
      waitingPrompts: 7,
      generators: [
        { address: "10.0.0.1:8443", ready: true, policyVersion: 4, running: 3 },
        { address: "10.0.0.2:8443" },
      ],
    },
    checkpoint: { iteration: 4, digest: "d".repeat(64), path: "checkpoints/1-000004" },
  });
  assert.deepEqual(status, {
    ...{ phase: "EXECUTING", iteration: 5, blocked: "NoActors", message: "m", nonsense: undefined },
    blockedSinceMs: NOW_MS,
    executions: { queued: 1, running: 2, completed: 3, lost: 4, retried: 5, disrupted: 6 },
    actors: [{ name: "quick-actor-0-0", connected: true, draining: false, running: 1 }],
    finished: {
      ...{ iteration: 4, lineage: 2, elapsedSeconds: 400, bestScore: 812.5, meanScore: 900, validFraction: 0.5 },
      ...{ meanDurationSeconds: 2, engineSeconds: LINE.engineSeconds, meanNormalizedScore: undefined, tasks: [] },
      noSignalIterations: undefined,
    },
    evaluations: new Map(),
    evaluation: { protocol: "Paper", before: POLICY },
    generation: {
      waitingPrompts: 7,
      generators: [
        { address: "10.0.0.1:8443", ready: true, policyVersion: 4, running: 3, notUsedBecause: "" },
        { address: "10.0.0.2:8443", ready: false, policyVersion: undefined, running: 0, notUsedBecause: "" },
      ],
    },
    checkpoint: { iteration: 4, digest: "d".repeat(64), path: "checkpoints/1-000004" },
  });
});

test("Scores, evaluations and kubectl's columns are kept by task; unknown task names are ignored", () => {
  const task = (best: number, mean: number | null) => ({
    samples: 8,
    bestScoreSoFar: best,
    meanScore: mean,
    validFraction: 0.5,
  });
  const said = {
    phase: Phase.EXECUTING,
    iteration: 5,
    ...line({
      ...{ meanScore: null, bestScoreSoFar: null, meanNormalizedScore: 0.4321 },
      tasks: { diamonds: task(281.3604, 400), wage: task(35.757, null), other: task(1, 1) },
    }),
    evaluationJson: JSON.stringify({ tasks: { wage: { protocol: "Paper", before: POLICY } } }),
  };
  const run = runOf({ tasks: [{ name: "diamonds" }, { name: "wage" }] });
  const status = statusOf(said, "Running", {}, run);
  assert.deepEqual(status.tasks, [
    { name: "diamonds", samples: 8, best: 281.3604, mean: 400, validFraction: 0.5 },
    { name: "wage", samples: 8, best: 35.757, validFraction: 0.5, evaluation: { protocol: "Paper", before: POLICY } },
  ]);
  assert.deepEqual([status.display?.best, status.display?.mean], ["diamonds=281.4 wage=35.76", "0.4321"]);
  assert.deepEqual([status.score, status.evaluation], [{ meanNormalized: 0.4321, validFraction: 0.5 }, undefined]);
  const silent = statusOf({ phase: Phase.EXECUTING, iteration: 5 }, "Running", status, run);
  assert.deepEqual(silent.tasks, status.tasks, "known tasks stay");
  assert.equal(parse(line({ tasks: { wage: 3 } })).nonsense?.startsWith("iterationJson.tasks.wage is 3"), true);
});

test("Absent, null and empty fields have no effect", () => {
  const silent = { iterationJson: "{}", evaluationJson: '{"protocol":"Paper"}', executions: null, checkpoint: {} };
  for (const said of [{}, silent, { evaluationJson: "{}" }]) {
    const { finished, evaluation, executions, checkpoint, nonsense } = parse(said as StatusMessage);
    assert.deepEqual([finished, evaluation, executions, checkpoint, nonsense], Array(5).fill(undefined));
  }
  const { finished, nonsense } = parse(line({ meanScore: null, bestScoreSoFar: null, meanDurationSeconds: null }));
  assert.deepEqual([finished?.meanScore, finished?.meanDurationSeconds, nonsense], [undefined, undefined, undefined]);
  for (const engineSeconds of [null, undefined, {}, { sleeping: 3 }])
    assert.deepEqual([parse(line({ engineSeconds })).finished?.engineSeconds, nonsense], [undefined, undefined]);
  assert.equal(parse(line({ bestScoreSoFar: undefined, tasks: { t: { bestScoreSoFar: 3 } } })).finished?.bestScore, 3);
});

const NONSENSE: [what: string, said: StatusMessage, nonsense: RegExp][] = [
  ["bad JSON", { iterationJson: "{" }, /^iterationJson is "\{", must be a JSON object$/],
  ["JSON that is no object", { iterationJson: "[1]" }, /^iterationJson is "\[1\]", must be a JSON object$/],
  ["an iteration below 0", line({ iteration: -5 }), /^iterationJson\.iteration is -5, must be an integer from 0 to/],
  ["a time that is no date", { blockedSinceUnixMs: 9e15 }, /^blockedSinceUnixMs is 9000000000000000, must be/],
  ["half an iteration", line({ iteration: 1.5 }), /^iterationJson\.iteration is 1\.5/],
  ["an iteration in words", line({ iteration: "four" }), /^iterationJson\.iteration is "four"/],
  [
    "no iteration",
    { iterationJson: '{"lineage":1}' },
    /^iterationJson is .* must be a line with iteration and lineage/,
  ],
  [
    "seconds without end",
    line({ elapsedSeconds: 1e300 }),
    /^iterationJson\.elapsedSeconds is 1e\+300, must be a number/,
  ],
  ["a number beyond numbers", { iterationJson: '{"iteration":1,"lineage":1,"meanScore":1e999}' }, /meanScore is null/],
  ["a share above 1", line({ validFraction: 7 }), /^iterationJson\.validFraction is 7, must be a number from 0 to 1$/],
  [
    "what the engine did in a word",
    line({ engineSeconds: "slept" }),
    /^iterationJson\.engineSeconds is "slept", must be/,
  ],
  [
    "seconds below 0",
    line({ engineSeconds: { updating: -1 } }),
    /engineSeconds\.updating is -1, must be a number from 0/,
  ],
  ["JSON without end", line({ pad: "x".repeat(70_000) }), /^iterationJson is ".*…, must be at most 65536 characters/],
  ["a phase of tomorrow", { phase: 77 as never }, /^phase is 77, must be one of STARTING, /],
  ["a property of every object", { blocked: "constructor" }, /^blocked is "constructor", must be one of NoActors, /],
  ["more than int32", { executions: { queued: 4e9 } }, /^executions\.queued is 4000000000, must be an integer/],
  ["a path without end", { checkpoint: { path: "x".repeat(5000) } }, /^checkpoint\.path is ".*…, must be at most 4096/],
  ["an actor without a name", { actors: [{ running: 1 }] }, /^actors\[\]\.name is "", must be 1 to 253 characters$/],
  ["actors without end", { actors: Array(10_001).fill({ name: "a" }) }, /^actors is 10001, must be at most 10000$/],
  [
    "a generator without an address",
    { generation: { generators: [{ running: 1 }] } },
    /^generation\.generators\[\]\.address is "", must be 1 to 253 characters$/,
  ],
  [
    "more prompts than int32",
    { generation: { waitingPrompts: 4e9 } },
    /^generation\.waitingPrompts is 4000000000, must/,
  ],
  ["bad JSON of an evaluation", { evaluationJson: "nope" }, /^evaluationJson is "nope", must be a JSON object$/],
  [
    "a medal of lead",
    evaluation({ after: { ...POLICY, bestMedal: "lead" } }),
    /after\.bestMedal is "lead", must be one/,
  ],
  ["a protocol of one's own", evaluation({ protocol: "Mine", after: POLICY }), /^evaluationJson\.protocol is "Mine"/],
  ["a policy that is a number", evaluation({ before: 3 }), /^evaluationJson\.before is 3, must be an object$/],
  [
    "samples that are missing",
    evaluation({ before: { iteration: 1 } }),
    /^evaluationJson\.before is .*iteration and samples/,
  ],
];

describe("nonsensical fields are left out and named, and the end of the run is still seen", () => {
  for (const [what, said, nonsense] of NONSENSE)
    test(what, () => {
      assert.match(parse(said).nonsense ?? "", nonsense);
      if (said.phase === undefined) assert.equal(parse({ ...said, phase: Phase.FAILED_RUN }).phase, "FAILED_RUN");
      const status = statusOf({ phase: Phase.FAILED_RUN, message: "the disk is full", ...without(said, "phase") });
      assert.equal(status.phase, "Failed");
      assert.deepEqual(problemsOf(status), []);
    });
});

test("A checkpoint in an answer is checked like one in a status", () => {
  const path = "checkpoints/1-000003";
  assert.deepEqual(parseCheckpoint({ path } as never), { path, iteration: 0, digest: "" });
  assert.equal(parseCheckpoint({ path: "x".repeat(5000) } as never), undefined);
  assert.equal(parseCheckpoint(null as never), undefined);
});

function without(said: StatusMessage, field: "phase"): StatusMessage {
  const { [field]: _, ...rest } = said;
  return rest;
}

const RUN = runOf({ stopping: { iterations: 10 }, generation: {} });

function statusOf(said: StatusMessage, stage: Stage = "Running", before: object = {}, of = RUN) {
  const run = { ...of, status: before };
  return statusFrom({
    observed: observedOf(run, { actors: [actorOf(run, 0)], link: linkOf(said) }),
    lifecycle: { stage, learnerReplicas: 1 },
    learner: { available: true, reason: "Connected", message: "the learner answers" },
    scale: {
      ...{ desired: 1, demand: { queued: 1, running: 0 }, create: [], drain: [], remove: [] },
      ...{ againSeconds: undefined, failures: 0 },
    },
    refused: {},
    generation: { replicas: 2, demand: undefined, againSeconds: undefined },
  });
}

/** Checks like the API server, but refuses unknown fields: the server prunes them, so the controller would write them again for ever. */
const validate = (() => {
  const ajv = new Ajv({ allErrors: true, strict: false });
  ajv.addFormat("int32", { type: "number", validate: (value) => Number.isInteger(value) && Math.abs(value) < 2 ** 31 });
  ajv.addFormat("int64", { type: "number", validate: Number.isSafeInteger });
  ajv.addFormat("double", { type: "number", validate: Number.isFinite });
  ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  const closed = (schema: object): object =>
    Object.fromEntries(
      Object.entries({ ...schema, ...("properties" in schema && { additionalProperties: false }) }).map(([key, it]) => [
        key,
        typeof it === "object" && it !== null && !Array.isArray(it) && key !== "default" ? closed(it) : it,
      ]),
    );
  const { status } = readSchema().properties!;
  return ajv.compile({ ...closed(status!) });
})();

/** JSON in UTF-8 has no half of a surrogate pair. */
function storedAs(status: object): object {
  return JSON.parse(JSON.stringify(status), (_, it) => (typeof it === "string" ? it.toWellFormed() : it));
}

function problemsOf(status: object): string[] {
  // The controller sends JSON, which drops undefined fields.
  validate(JSON.parse(JSON.stringify(status)));
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe("A learner may send anything", () => {
  const number = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.constantFrom(-5, 0, 0.5, 1e300, -1e300, 2 ** 31, 2 ** 53, Number.MAX_VALUE),
  );
  const value = fc.oneof(number, fc.jsonValue({ maxDepth: 2 }), fc.string({ unit: "binary" }));
  const among = (names: string[]) =>
    fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
  const mostly = (plain: object, change: fc.Arbitrary<object>) =>
    fc.oneof(
      fc.tuple(change, fc.boolean()).map(([it, whole]) => JSON.stringify(whole ? { ...plain, ...it } : it)),
      fc.string({ unit: "binary" }),
      fc.json(),
    );
  const policy = among([...Object.keys(POLICY), "bestMedal", "bestFromScratch", "other"]);
  const iterationJson = mostly(LINE, among([...Object.keys(LINE), "tasks", "__proto__", "other"]));
  const evaluationJson = mostly({ protocol: "Paper" }, fc.record({ before: policy, after: policy, protocol: value }));
  const uint32 = fc.oneof(fc.nat(), fc.constantFrom(2 ** 31, 2 ** 32 - 1));
  const uint64 = fc.oneof(fc.nat(), fc.constantFrom(2 ** 53, 2 ** 60));
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("{}", '{"msg":5}', "constructor", "😀".repeat(3000)),
  );
  const said: fc.Arbitrary<StatusMessage> = fc.record(
    {
      ...{
        phase: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.nat()),
        iteration: uint32,
        message: text,
        blocked: text,
      },
      executions: fc.record({ queued: uint32, running: uint32, completed: uint64, lost: uint64, retried: uint64 }),
      actors: fc.array(fc.record({ name: text, running: uint32, connected: fc.boolean() }), { maxLength: 3 }),
      ...{ iterationJson, evaluationJson },
      generation: fc.record({
        waitingPrompts: uint32,
        generators: fc.array(
          fc.record({
            address: text,
            ready: fc.boolean(),
            policyVersion: uint64,
            running: uint32,
            notUsedBecause: text,
          }),
          { maxLength: 3 },
        ),
      }),
      checkpoint: fc.record({ iteration: uint32, digest: text, path: text }),
    },
    { requiredKeys: [] },
  ) as never;
  const stage = fc.constantFrom<Stage>("Running", "Suspending", "Suspended", "Refused", "Ending", "Ended");

  test("The resulting status passes the CRD's schema, also after another one", () => {
    fc.assert(
      fc.property(said, said, stage, (first, second, at) => {
        const before = statusOf(first);
        assert.deepEqual(problemsOf(before), []);
        assert.deepEqual(problemsOf(statusOf(second, at, before)), []);
      }),
      { numRuns: 500 },
    );
  });

  test("A repeated message changes nothing: the stored status equals the desired one", () => {
    fc.assert(
      fc.property(said, (it) => {
        const stored = storedAs(statusOf(it));
        assert.deepEqual(JSON.parse(JSON.stringify(statusOf(it, "Running", stored))), stored);
      }),
      { numRuns: 300 },
    );
  });

  test("A final phase is seen", () => {
    fc.assert(
      fc.property(
        said,
        fc.constantFrom([Phase.SUCCEEDED, "Succeeded"], [Phase.FAILED_RUN, "Failed"]),
        (it, [phase, is]) => {
          const status = statusOf({ ...it, phase: phase as never }, "Ending", statusOf(it));
          assert.equal(it.phase === Phase.SUCCEEDED || it.phase === Phase.FAILED_RUN ? is : status.phase, is);
        },
      ),
    );
  });
});
