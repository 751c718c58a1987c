import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../store/store.fixture.ts";
import type { IterationMetrics } from "./iteration.ts";
import { MetricsFile, readMetrics } from "./jsonl.ts";

const line = (iteration: number, lineage = 1) => ({ iteration, lineage }) as IterationMetrics;
const text = (...lines: IterationMetrics[]) => lines.map((one) => `${JSON.stringify(one)}\n`).join("");

async function file(content?: string): Promise<string> {
  const path = join(scratchFolder(), "metrics.jsonl");
  if (content !== undefined) await writeFile(path, content);
  return path;
}

const cases: [name: string, before: string | undefined, resumed: number, kept: number[]][] = [
  ["a new file", undefined, 0, []],
  ["a resumed run keeps what its checkpoint has", text(line(1), line(2), line(3)), 3, [1, 2, 3]],
  ["lines after the checkpoint go", text(line(1), line(2), line(3)), 1, [1]],
  ["a run that starts over keeps none", text(line(1), line(2)), 0, []],
  ["a torn last line goes", `${text(line(1), line(2))}{"iteration":3,"lin`, 9, [1, 2]],
  ["a last line without its end goes, it may be torn", text(line(1), line(2)).trimEnd(), 9, [1]],
  ["zeros that a crash left go", `${text(line(1))}\0\0\0\0\n`, 9, [1]],
  ["of two lines the later stays", text(line(1), line(2), line(2, 2)), 9, [1, 2]],
];

for (const [name, before, resumed, kept] of cases) {
  test(`metrics.jsonl is read and continued: ${name}`, async () => {
    const path = await file(before);
    const metrics = await MetricsFile.open(path, resumed);
    assert.equal(metrics.last?.iteration, kept.at(-1));
    await metrics.append(line(50));
    assert.equal(metrics.last?.iteration, 50);
    await metrics.close();
    assert.deepEqual(
      (await readMetrics(path)).map(({ iteration }) => iteration),
      [...kept, 50],
    );
    assert.equal((await readFile(path, "utf8")).split("\n").length, kept.length + 2);
  });
}

test("the later of two lines of an iteration in metrics.jsonl is read", async () => {
  const path = await file(text(line(2), line(2, 7)));
  assert.deepEqual(
    (await readMetrics(path)).map(({ lineage }) => lineage),
    [7],
  );
});

test("a missing folder of metrics.jsonl is refused in one line", async () => {
  const path = join(await file(), "nowhere", "metrics.jsonl");
  await assert.rejects(MetricsFile.open(path, 0), { code: "metrics-file", message: /metrics\.jsonl: cannot write/ });
});
