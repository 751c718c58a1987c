import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { writeSafetensors } from "../../learner/engine/model/safetensors.ts";
import { differences } from "./difference.ts";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "difference-"));
after(() => fs.rmSync(root, { recursive: true }));

test("The comparison distinguishes rounding from other numbers, other text and other files", () => {
  const [before, made] = ["before", "after"].map((name) => path.join(root, name));
  for (const folder of [before, made]) fs.mkdirSync(path.join(folder, "below"), { recursive: true });
  const pair = (file: string, old: unknown, next: unknown) => {
    for (const [folder, value] of [
      [before, old],
      [made, next],
    ] as const) {
      if (value instanceof Float32Array)
        writeSafetensors(path.join(folder, file), new Map([["w", { shape: [value.length], data: value }]]));
      else if (value !== undefined) fs.writeFileSync(path.join(folder, file), JSON.stringify(value));
    }
  };
  pair("below/equal.json", { a: [1, 2] }, { a: [1, 2] });
  pair("order.json", { a: 1, b: [0.5] }, { b: [0.5], a: 1 });
  pair("rounding.json", { a: [0.5, "x", null] }, { a: [0.75, "x", null] });
  pair("large.json", [1000], [1001]);
  pair("text.json", ["x"], ["y"]);
  pair("length.json", [1], [1, 1]);
  pair("key.json", { a: 1 }, { b: 1 });
  pair("gone.json", [1], undefined);
  pair("new.json", undefined, [1]);
  pair("weights.safetensors", Float32Array.of(1, 2), Float32Array.of(1, 2.5));
  pair("not-finite.safetensors", Float32Array.of(1, 2), Float32Array.of(1, Number.NaN));
  const far = Number.POSITIVE_INFINITY;
  assert.deepEqual(Object.fromEntries(differences(before, made).map(({ file, largest }) => [file, largest])), {
    "gone.json": far,
    "key.json": far,
    "large.json": 0.001,
    "length.json": far,
    "new.json": far,
    "not-finite.safetensors": far,
    "order.json": 0,
    "rounding.json": 0.25,
    "text.json": far,
    "weights.safetensors": 0.25,
  });
});
