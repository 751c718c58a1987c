/** An invalid lease is refused with the field and the value. LONGRUN_FUZZ_SECONDS lengthens the property test. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parse } from "yaml";
import type { Limits } from "../proto/execution.ts";
import { ActorError } from "./errors.ts";
import { type Lease, parseAttempt, requestOf } from "./lease.ts";
import { DEFAULT_LIMITS, LARGEST_LIMITS } from "./limits.ts";

const FUZZ_SECONDS = Number(process.env.LONGRUN_FUZZ_SECONDS ?? 3);
const attempt = { execution: "e", number: 1, fence: "7" };
const lease: Lease = { attempt, task: "t", program: Buffer.from("pass"), markerNonce: "a".repeat(32), seed: 1 };

test("a valid lease becomes a request, with the default limits", () => {
  const { attempt: _, markerNonce: nonce, ...rest } = lease;
  assert.deepEqual(requestOf(lease), { ...rest, nonce, limits: DEFAULT_LIMITS });
  assert.deepEqual(requestOf({ attempt, task: "t" }).program, new Uint8Array(), "a program may be empty");
  assert.deepEqual(requestOf({ ...lease, limits: { ...LARGEST_LIMITS } }).limits, LARGEST_LIMITS);
});

describe("an invalid lease is refused with its field and value", () => {
  const limited = (limits: Record<string, number>) => ({ limits });
  const cases: [change: object, message: RegExp][] = [
    [{ task: "" }, /^lease: task is "", must be/],
    [{ task: "a".repeat(1 << 20) }, /^lease: task is "a{79}, must be a name of 1 to 253/],
    [{ markerNonce: "a" }, /markerNonce is "a"/],
    [{ markerNonce: ".*".repeat(16) }, /markerNonce is "\.\*/],
    [{ markerNonce: `${"a".repeat(32)}\n` }, /markerNonce is/],
    [{ markerNonce: "A".repeat(32) }, /markerNonce is/],
    [{ markerNonce: "a".repeat(1 << 20) }, /markerNonce is "a{79},/],
    [{ seed: -1 }, /seed is -1/],
    [{ seed: 2 ** 32 }, /seed is 4294967296/],
    [{ seed: 2 ** 64 }, /seed is 18446744073709552000/],
    [{ seed: Number.NaN }, /seed is/],
    [limited({ timeoutSeconds: Number.NaN }), /limits.timeoutSeconds: is NaN/],
    [limited({ timeoutSeconds: -1 }), /limits.timeoutSeconds: is -1/],
    [limited({ timeoutSeconds: 2 ** 31 }), /limits.timeoutSeconds: is 2147483648/],
    [limited({ timeoutSeconds: 1e308 }), /limits.timeoutSeconds: is 1e\+308/],
    [limited({ timeoutSeconds: Number.POSITIVE_INFINITY }), /limits.timeoutSeconds: is Infinity/],
    [limited({ memoryBytes: 2 ** 64 }), /limits.memoryBytes: is 18446744073709552000/],
    [limited({ memoryBytes: 1.5 }), /limits.memoryBytes: is 1.5/],
    [limited({ outputBytes: 1e15 }), /limits.outputBytes: is 1000000000000000/],
    [limited({ keptOutputBytes: 1e15 }), /limits.keptOutputBytes: is 1000000000000000/],
    [limited({ scratchFiles: 2 ** 32 - 1 }), /limits.scratchFiles: is 4294967295/],
    [limited({ processes: 2 ** 32 - 1 }), /limits.processes: is 4294967295/],
    [limited({ submissionBytes: 1e15 }), /limits.submissionBytes: is 1000000000000000/],
  ];
  for (const [change, message] of cases)
    test(String(message), () => {
      assert.throws(
        () => requestOf({ ...lease, ...change }),
        (error: ActorError) => error instanceof ActorError && message.test(error.message) && error.message.length < 300,
      );
    });
});

test("the largest limits of a lease equal the largest limits of a TrainingRun", () => {
  const file = new URL("../crds/longrun.dev_trainingruns.yaml", import.meta.url);
  const schema = JSON.stringify(parse(readFileSync(file, "utf8")));
  for (const [name, largest] of Object.entries(LARGEST_LIMITS)) {
    const field = { timeoutSeconds: "executionTimeoutSeconds", memoryBytes: "executionMemoryBytes" }[name] ?? name;
    assert.equal(
      Number(new RegExp(`"${field}":{[^{}]*(?:{[^{}]*}[^{}]*)?"maximum":(\\d+)`).exec(schema)?.[1]),
      largest,
      field,
    );
  }
});

test("an attempt that a learner would not accept is refused", () => {
  assert.deepEqual(parseAttempt(attempt), attempt);
  const long = "e".repeat(1 << 20);
  for (const change of [
    { execution: "" },
    { execution: long },
    { number: 0 },
    { fence: "" },
    { fence: "x" },
    { fence: long },
  ])
    assert.equal(parseAttempt({ ...attempt, ...change }), undefined, JSON.stringify(change).slice(0, 80));
  for (const none of [undefined, null, {}]) assert.equal(parseAttempt(none), undefined);
});

test("any lease gives an ActorError of one short line or a request within the largest limits", () => {
  const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(0, 2 ** 31, 2 ** 53, 2 ** 64, 1e308));
  const names = Object.keys(DEFAULT_LIMITS) as (keyof Limits)[];
  const limits = fc.record(Object.fromEntries(names.map((name) => [name, number])), { requiredKeys: [] });
  const task = fc.oneof(fc.string(), fc.constantFrom("../../etc", "__proto__", "constructor", "t"));
  const nonce = fc.oneof(fc.string(), fc.constantFrom("", "a".repeat(32)));
  const any = fc.record({ task, markerNonce: nonce, seed: number, limits }, { requiredKeys: [] });
  fc.assert(
    fc.property(any, (change) => {
      try {
        const request = requestOf({ ...lease, ...(change as object) });
        for (const name of names)
          assert.ok(request.limits[name] > 0 && request.limits[name] <= LARGEST_LIMITS[name], name);
        assert.ok(request.limits.timeoutSeconds * 1000 < 2 ** 31, "a timer of Node's");
      } catch (error) {
        assert.ok(error instanceof ActorError, String(error));
        assert.match(error.message, /^.{1,300}$/);
      }
    }),
    { numRuns: 1e9, interruptAfterTimeLimit: (FUZZ_SECONDS * 1000) / 6, markInterruptAsFailure: false },
  );
});
