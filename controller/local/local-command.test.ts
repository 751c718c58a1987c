import assert from "node:assert/strict";
import { test } from "node:test";
import { ControllerError } from "../errors.ts";
import { runLocalCommand } from "./local-command.ts";

const OPTIONS = { set: [], json: true, verbose: false, listen: "127.0.0.1:0", metricsListen: "127.0.0.1:0" };
const AROUND = { stdout: process.stdout, stderr: process.stderr, env: {} } as never;

test("A file that cannot be removed at the end hides neither the reason of the end nor the other steps", async () => {
  const steps: string[] = [];
  const run = (end: () => number) =>
    runLocalCommand(OPTIONS, AROUND, async ({ atEnd }) => {
      atEnd(() => void steps.push("first"));
      atEnd(() => {
        throw new Error("EROFS: read-only file system");
      });
      return end();
    });
  assert.equal(await run(() => 0), 0);
  const readOnly = new ControllerError("failed", "the disk is read-only; make it writable");
  await assert.rejects(
    run(() => {
      throw readOnly;
    }),
    readOnly,
  );
  assert.deepEqual(steps, ["first", "first"]);
});
