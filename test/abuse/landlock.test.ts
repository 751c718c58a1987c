import assert from "node:assert/strict";
import { test } from "node:test";
import { EXPECTATIONS } from "./expectations.ts";
import { hostile, runSuite } from "./suite.ts";

runSuite({ name: "landlock", level: "landlock" });

test("every program has an expectation, and every expectation a program", () => {
  assert.deepEqual(
    Object.keys(EXPECTATIONS).sort(),
    hostile.filter((name) => name !== "guess_random"),
  );
});
