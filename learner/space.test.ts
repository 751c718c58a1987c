import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { volumeWanted } from "../proto/volume.ts";
import { checkSpace, type Space } from "./space.ts";

const GB = 1e9;
const directory = mkdtempSync(join(tmpdir(), "space-"));
after(() => rmSync(directory, { recursive: true }));
const spec = (keepLast: number) => ({ learner: { checkpoint: { keepLast } } }) as unknown as TrainingRunSpec;
const space = (change: Partial<Space> = {}): Space => ({
  ...{ totalBytes: 107 * GB, freeBytes: 100 * GB, checkpointBytes: 0, ...change },
});
const CHECKPOINT = 74 * GB; // 3B, every weight, with a critic

test("a disk without room for two checkpoints is refused with the missing size, or a pod's volume size", () => {
  assert.throws(
    () => checkSpace(CHECKPOINT, spec(3), { directory: "/data", inPod: true }, space()),
    (error: Error) => {
      const { message } = error;
      assert.equal((error as Error & { code: string }).code, "diskFull");
      assert.match(
        message,
        /^a checkpoint of this run takes 74\.0 GB, and \/data has room for 100 GB: two do not fit; /,
      );
      assert.equal(volumeWanted(message), `${Math.ceil((1.05 * (7 + 4 * 74) * GB) / 2 ** 30)}Gi`);
      return true;
    },
  );
  assert.throws(() => checkSpace(CHECKPOINT, spec(1), { directory: "runs/a", inPod: false }, space()), {
    code: "diskFull",
    message:
      /two do not fit; free 48\.0 GB, choose a folder on another disk with --out, or train with model\.adaptation\.type: LoRA$/,
  });
});

test("a disk that is full of kept checkpoints is refused with a number of them that leaves room for the next", () => {
  const full = { totalBytes: 31.4e6, freeBytes: 4.3e6, checkpointBytes: 2 * 12.6e6 };
  for (const [inPod, remedy] of [
    [false, " (--set learner.checkpoint.keepLast=1), or free space"],
    [true, ", or set learner.storage.size to 1Gi or more"],
  ] as const)
    assert.throws(() => checkSpace(12.6e6, spec(2), { directory: "runs/a", inPod }, full), {
      code: "diskFull",
      message:
        "a checkpoint of this run takes 12.6 MB, and runs/a has room for 29.5 MB: learner.checkpoint.keepLast 2 and " +
        `the next one need 37.8 MB; lower it to 1${remedy}`,
    });
  const pruned = { ...full, freeBytes: full.freeBytes + 12.6e6, checkpointBytes: 12.6e6 };
  assert.equal(checkSpace(12.6e6, spec(1), { directory: "runs/a", inPod: false }, pruned), undefined);
});

test("a disk without room for all kept checkpoints is a warning, and existing checkpoints count as room", () => {
  const pod = { directory: "/data", inPod: true };
  const warning = checkSpace(30 * GB, spec(3), pod, space());
  assert.match(
    warning!,
    /keepLast 3 and the next one need 120 GB; lower it to 2, or set learner\.storage\.size to 125Gi or more$/,
  );
  assert.equal(checkSpace(30 * GB, spec(2), pod, space()), undefined);
  assert.equal(checkSpace(30 * GB, spec(3), pod, space({ freeBytes: 30 * GB, checkpointBytes: 90 * GB })), undefined);
});

test("the files of two versions of full weights for generators count, and existing ones count as room", () => {
  const local = { directory: "runs/a", inPod: false };
  const sentBytes = 12 * GB; // 3B in float32
  assert.equal(checkSpace(25 * GB, spec(2), { ...local, sentBytes }, space()), undefined);
  assert.match(
    checkSpace(25 * GB, spec(2), { ...local, sentBytes: 13 * GB }, space())!,
    /has room for 74\.0 GB beside two versions of weights for generators, 26\.0 GB: .* need 75\.0 GB; lower it to 1 \(--set learner\.checkpoint\.keepLast=1\), or free/,
  );
  assert.throws(() => checkSpace(CHECKPOINT, spec(1), { ...local, sentBytes }, space({ freeBytes: 20 * GB })), {
    message:
      /has room for 0 bytes beside .*; free 152 GB, .* model\.adaptation\.type: LoRA and generation\.weightSync: Adapter$/,
  });
  assert.throws(
    () => checkSpace(45 * GB, spec(1), { directory: "/data", inPod: true, sentBytes }, space()),
    ({ message }: Error) => volumeWanted(message) === `${Math.ceil((1.05 * (7 + 2 * 45 + 24) * GB) / 2 ** 30)}Gi`,
  );
});

test("the space of a folder is its disk's free space", () => {
  mkdirSync(join(directory, "checkpoints/1-000001/policy"), { recursive: true });
  assert.equal(checkSpace(1, spec(3), { directory, inPod: false }), undefined);
  assert.throws(() => checkSpace(1e18, spec(3), { directory, inPod: false }), /two do not fit; free \S+ GB, choose/);
});
