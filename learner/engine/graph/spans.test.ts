import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { spansOf } from "./attention.ts";

/** A row: tokens of its prompt, and of each response. */
const row = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }));

test("Spans show a query the earlier tokens of its prompt and of its own branch, and nothing sees padding", () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 3 }), fc.integer({ min: 0, max: 3 }), (rows, padding) => {
      const written = rows.map(([prompt, responses]) => [
        ...new Array<number>(prompt).fill(0),
        ...responses.flatMap((length, i) => new Array<number>(length).fill(i + 1)),
      ]);
      const time = padding + Math.max(...written.map(({ length }) => length));
      const branches = new Int32Array(rows.length * time);
      for (const [i, of] of written.entries()) branches.set(of, i * time);
      const lengths = written.map(({ length }) => length);
      const tokens = branches.length;
      const spans = spansOf(branches, time, lengths);
      const at = (span: number, token: number) => spans[span * tokens + token]!;
      const rowOf = (token: number) => Math.floor(token / time);
      const isReal = (token: number) => token % time < lengths[rowOf(token)]!;
      for (let q = 0; q < tokens; q++)
        for (let k = 0; k < tokens; k++) {
          const mine = rowOf(k) === rowOf(q) && (branches[k] === 0 || branches[k] === branches[q]);
          const seen = isReal(q) && isReal(k) ? k <= q && mine : k === q;
          assert.equal(k <= q && q < at(0, k), seen, `by the end of key ${k}, query ${q}`);
          const near = (at(1, q) <= k && k < at(2, q)) || (at(3, q) <= k && k <= q);
          assert.ok(near || !seen, `key ${k} is in the spans of query ${q}`);
        }
    }),
  );
});
