import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { newHash } from "./hash.ts";

const md5 = (text: string) => createHash("md5").update(text).digest();
const cases: [text: string, parts: string[]][] = [
  ["", [""]],
  ["abc", ["abc"]],
  ["abcd", ["abcd"]],
  ["abcdefghij", ["abcd", "efgh", "ij"]],
  ["abcdefgh", ["abcd", "efgh"]],
];
for (const [text, parts] of cases)
  test(`the hash of parts of 4 bytes of "${text}" is the same however the bytes come`, () => {
    const expected = `${createHash("md5")
      .update(Buffer.concat(parts.map(md5)))
      .digest("hex")}-${parts.length}`;
    for (const size of [1, 3, 4, 5, 100]) {
      const file = { name: "a", bytes: text.length, algorithm: "md5-parts" as const, hash: "", partBytes: 4 };
      const hash = newHash(file);
      for (let at = 0; at < text.length; at += size) {
        hash.update(Buffer.from(text.slice(at, at + size)));
        hash.digest(); // the digest so far, which changes nothing
      }
      assert.equal(hash.digest(), expected, `${size} bytes at once`);
    }
  });
