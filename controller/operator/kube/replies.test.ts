import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "./errors.ts";
import { apiError, parseBody } from "./replies.ts";

const reply = (body: string, status = 200) => ({ status, headers: {}, body }) as never;

for (const body of ["<html>", "", "null", '"text"', "5", "[]"])
  test(`an answer that is no object is refused, and what it was: ${JSON.stringify(body)}`, () => {
    assert.throws(
      () => parseBody("get pods", reply(body)),
      (error: unknown) => {
        assert.ok(error instanceof ApiError, String(error));
        assert.equal(error.reason, "BadAnswer");
        assert.equal(error.message, `get pods: the answer ${JSON.stringify(body)} is not a JSON object`);
        return true;
      },
    );
    assert.deepEqual(parseBody("get pods", reply('{"a":1}')), { a: 1 });
  });

for (const [body, message] of [
  ["null", "get pods: 502 null"],
  ['"no upstream"', 'get pods: 502 "no upstream"'],
  ["[]", "get pods: 502 []"],
  ["no upstream", "get pods: 502 no upstream"],
  ['{"message":{"a":1},"reason":7}', 'get pods: 502 {"message":{"a":1},"reason":7}'],
  ['{"message":"busy","details":"x"}', "get pods: 502 busy"],
  ['{"message":"busy","details":{"causes":{},"retryAfterSeconds":"soon"}}', "get pods: 502 busy"],
  ['{"message":"busy","details":{"causes":[null]}}', "get pods: 502 busy"],
  ["{}", "get pods: 502"],
] as const)
  test(`an error in a proxy's own format is told as it is: ${body}`, () => {
    for (const status of [502, 422]) {
      const error = apiError("get pods", reply(body, status));
      assert.ok(error instanceof ApiError);
      assert.deepEqual(
        [error.message, error.status, error.reason, error.retryAfterSeconds],
        [message.replace("502", String(status)), status, "Unknown", undefined],
      );
    }
  });

test("a status tells its reason, when to come back, and a wrong uid as a conflict", () => {
  const details = { retryAfterSeconds: 3, causes: [{ field: "metadata.uid" }] };
  const error = apiError("patch", reply(JSON.stringify({ message: "m", reason: "Invalid", details }), 422));
  assert.deepEqual([error.status, error.reason, error.retryAfterSeconds], [409, "Conflict", 3]);
  const other = apiError("patch", reply('{"message":"m","reason":"Invalid"}', 422));
  assert.deepEqual([other.status, other.reason], [422, "Invalid"]);
});
