import assert from "node:assert/strict";
import { test } from "node:test";
import { Progress } from "./progress.ts";

function begun(isTTY = false): { progress: Progress; written: string[] } {
  const written: string[] = [];
  const progress = new Progress({ isTTY, write: (text) => written.push(text) }, "acme/model");
  progress.expect(139_000, 0);
  return { progress, written };
}

test("the pace and the time left are of the bytes that came", () => {
  const { progress } = begun();
  progress.count(34_750);
  assert.equal(progress.line(2), "acme/model: 34.8 kB of 139 kB (25 %), 17.4 kB/s, 6 s left");
});

test("no pace is shown before a byte has come, nor after bytes of an earlier fetch alone", () => {
  const { progress } = begun();
  assert.equal(progress.line(2), "acme/model: 0 bytes of 139 kB (0 %)");
  progress.expect(61_000, 50_000);
  progress.count(-50_000); // discarded
  assert.equal(progress.line(2), "acme/model: 0 bytes of 200 kB (0 %)");
});

for (const isTTY of [false, true])
  test(`a fetch that ends at once shows nothing${isTTY ? " on a terminal" : ""}`, () => {
    const { progress, written } = begun(isTTY);
    for (let part = 0; part < 10; part++) progress.count(13_900);
    assert.deepEqual(written, []);
  });
