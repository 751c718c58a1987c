import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Column } from "./column.ts";
import { type Frame, readFrame } from "./frame.ts";
import { placesAmong } from "./label-places.ts";

function columnOf(labels: readonly (bigint | number)[]): Column {
  const text = `y,\n${labels.map((label) => `${label},`).join("\n")}\n`;
  return (readFrame(Buffer.from(text), { bytes: 2 ** 20, rows: 1000, wholeColumns: true }) as Frame).column("y")!;
}

const label = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: 2n ** 60n, max: 2n ** 60n + 3n }),
  fc.bigInt({ min: -2n, max: 2n }),
);
const labels = fc.array(label, { minLength: 1, maxLength: 20 });

test("places are equal and ordered as the labels are", () => {
  fc.assert(
    fc.property(labels, labels, (truth, predicted) => {
      const placesOf = placesAmong(columnOf(truth));
      const all = [...truth, ...predicted];
      const places = [...placesOf(columnOf(truth)), ...placesOf(columnOf(predicted))];
      const order = <Value>(a: Value, b: Value) => (a < b ? -1 : a > b ? 1 : 0);
      for (const [i, a] of all.entries())
        for (const [j, b] of all.entries()) assert.equal(order(places[i]!, places[j]!), order(a, b), `${a} ${b}`);
    }),
  );
});

test("whole numbers and floats that are equal have one place, and a float is no neighbour beyond 2^53", () => {
  const placesOf = placesAmong(columnOf([1, 2n ** 60n, 2n ** 60n + 1n]));
  assert.deepEqual([...placesOf(columnOf([1.5, 1, 2 ** 60, 0.5]))], [0.5, 0, 1, -0.5]);
});
