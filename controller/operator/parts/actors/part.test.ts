import assert from "node:assert/strict";
import { test } from "node:test";
import { NOW_MS, runOf } from "../../run.fixture.ts";
import { actors } from "./part.ts";

test("A controller that starts keeps as many actors as the runtime's max allows for one window", () => {
  const ran = (max: number) => ({ actors: { desired: 20 }, runtime: { name: "a", spec: { actors: { max } } } });
  const first = (status: object) => actors.initial!(runOf({}, status), NOW_MS).stabiliser!.next(1, NOW_MS / 1000);
  assert.deepEqual([first(ran(32)), first(ran(8)), first({ actors: { desired: 20 } })], [20, 8, 1]);
});
