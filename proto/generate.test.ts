import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { generate } from "./generate.ts";
import { ActorProtocolService, messages } from "./service.ts";

test("The generated files equal the output for longrun.proto", () => {
  for (const [name, text] of generate())
    assert.equal(readFileSync(join(import.meta.dirname, name), "utf8"), text, name);
});

test("64-bit fields are numbers, set or not, also beyond 32 bits", () => {
  const { requestSerialize, requestDeserialize } = ActorProtocolService.work;
  for (const bytes of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 3, Number.MAX_SAFE_INTEGER]) {
    const sent = requestSerialize({ result: { peakMemoryBytes: bytes, submission: { bytes } } });
    const { result } = requestDeserialize(sent);
    assert.equal(result?.peakMemoryBytes, bytes);
    assert.equal(result?.submission?.bytes, bytes);
  }
  assert.equal(new messages.Limits().memoryBytes, 0);
});

test("Absent scalars have their defaults, and absent messages stay absent", () => {
  const { requestDeserialize, requestSerialize } = ActorProtocolService.work;
  const { hello, message } = requestDeserialize(requestSerialize({ hello: {} }));
  assert.equal(message, "hello");
  assert.deepEqual([hello?.actor, hello?.slots, hello?.holding, hello?.versions], ["", 0, [], {}]);
  assert.equal(requestDeserialize(Buffer.alloc(0)).message, undefined);
});
