import assert from "node:assert/strict";
import { test } from "node:test";
import { newSample } from "../store/store.fixture.ts";
import type { Sample } from "../store/types.ts";
import { measuredSample } from "./measured-sample.ts";

test("a sample ahead of the weights is as far from them as one behind", () => {
  const lag = (iteration: number) => measuredSample(newSample("a", { iteration }) as unknown as Sample, 5).lag;
  assert.deepEqual([4, 2, 6].map(lag), [0, 2, 2]);
});
