import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { spansOf } from "./attention.ts";

/** A row: tokens of its prompt, and of each response. */
const row = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }));

test("Spans show a query the earlier tokens of its prompt and of its own branch, and nothing sees padding", () => {
  fc.assert(
    fc.property(
      fc.array(row, { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(3), { maxLength: 3 }),
      (rows, paddings) => {
        const written = rows.map(([prompt, responses]) => [
          ...new Array<number>(prompt).fill(0),
          ...responses.flatMap((length, i) => new Array<number>(length).fill(i + 1)),
        ]);
        /** the row of each token; undefined: padding, none or some after each row */
        const owners = written.flatMap((of, i): (number | undefined)[] => [
          ...of.map(() => i),
          ...new Array<undefined>(paddings[i] ?? 0).fill(undefined),
        ]);
        const tokens = owners.length;
        const branches = new Int32Array(tokens);
        const places = written.map((of, i) => ({ begin: Math.max(0, owners.indexOf(i)), tokens: of.length }));
        for (const [i, { begin }] of places.entries()) branches.set(written[i]!, begin);
        const spans = spansOf(branches, places);
        const at = (span: number, token: number) => spans[span * tokens + token]!;
        for (let q = 0; q < tokens; q++)
          for (let k = 0; k < tokens; k++) {
            const mine = owners[k] === owners[q] && (branches[k] === 0 || branches[k] === branches[q]);
            const seen = owners[q] !== undefined && owners[k] !== undefined ? k <= q && mine : k === q;
            assert.equal(k <= q && q < at(0, k), seen, `by the end of key ${k}, query ${q}`);
            const near = (at(1, q) <= k && k < at(2, q)) || (at(3, q) <= k && k <= q);
            assert.ok(near || !seen, `key ${k} is in the spans of query ${q}`);
            // a kernel takes the spans of a block of queries from its first one
            if (k >= q)
              for (const span of [1, 3]) assert.ok(at(span, k) >= at(span, q), `span ${span} of ${k} and ${q}`);
          }
      },
    ),
  );
});
