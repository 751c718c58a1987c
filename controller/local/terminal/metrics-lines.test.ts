import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { NewMetrics, readMetrics } from "./metrics-lines.ts";

const directory = mkdtempSync(join(tmpdir(), "longrun-metrics-"));
after(() => rmSync(directory, { recursive: true }));
const path = join(directory, "metrics.jsonl");
const row = (lineage: number, iteration: number, more = {}) => `${JSON.stringify({ lineage, iteration, ...more })}\n`;

test("The reader returns each finished iteration once, also after a restart that trains some again", () => {
  const metrics = new NewMetrics(directory);
  const taken = () => metrics.take().map(({ line }) => [line.lineage, line.iteration]);
  assert.deepEqual(taken(), [], "no file yet");
  appendFileSync(path, row(1, 1) + row(1, 2) + row(1, 3).slice(0, 9));
  assert.deepEqual(taken(), [
    [1, 1],
    [1, 2],
  ]);
  assert.deepEqual(taken(), []);
  appendFileSync(path, row(1, 3).slice(9));
  assert.deepEqual(taken(), [[1, 3]]);
  writeFileSync(path, row(1, 1) + row(2, 2));
  metrics.startOver();
  assert.deepEqual(taken(), [[2, 2]]);
  // The store had this line, and the learner ended before it was in the file.
  appendFileSync(path, row(2, 3) + row(3, 4));
  metrics.startOver();
  assert.deepEqual(taken(), [
    [2, 3],
    [3, 4],
  ]);
  assert.equal(readMetrics(directory).length, 4);
});

test("The reader's memory does not grow with the iterations", () => {
  setFlagsFromString("--expose-gc");
  const used = () => {
    runInNewContext("gc")();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  writeFileSync(path, "");
  const metrics = new NewMetrics(directory);
  const iteration = (number: number) => {
    appendFileSync(path, row(1, number, { filler: "x".repeat(3000) }));
    assert.equal(metrics.take().length, 1);
  };
  for (let number = 1; number <= 50; number++) iteration(number);
  const before = used();
  for (let number = 51; number <= 300; number++) iteration(number);
  const grown = used() - before;
  assert.equal(readMetrics(directory).length, 300);
  assert.ok(grown < 2 ** 20, `it keeps ${grown} bytes more`);
});
