import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { ManifestError } from "../crds/trainingrun.ts";
import type { FailureKind } from "../proto/exit-status.ts";
import { EngineError } from "./engine/errors.ts";
import { GraphError } from "./engine/graph/errors.ts";
import { ModelError } from "./engine/model/errors.ts";
import { exitStatusOf, failureKind } from "./failures.ts";
import { readManifest } from "./manifest.ts";
import { RolloutError } from "./rollout/errors.ts";
import { ServerError } from "./server/errors.ts";
import { StoreError } from "./store/errors.ts";
import { openStore } from "./store/store.ts";
import { TaskError } from "./tasks/errors.ts";

const system = (code: string) => Object.assign(new Error(`${code}: write`), { code });
const sqlite = (errcode: number) => Object.assign(new Error("sqlite"), { code: "ERR_SQLITE_ERROR", errcode });
const because = (cause: unknown) => ({ cause });

/** Returns the error of a learner whose mounted manifest somebody has emptied. */
function emptied(): unknown {
  const folder = mkdtempSync(join(tmpdir(), "longrun-emptied-"));
  try {
    writeFileSync(join(folder, "trainingrun.yaml"), "\n");
    readManifest(join(folder, "run"), join(folder, "trainingrun.yaml"));
    return undefined;
  } catch (error) {
    return error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const CASES: [name: string, error: unknown, training: FailureKind, firstStart?: FailureKind, restart?: FailureKind][] =
  [
    // the volume
    ["a full disk", system("ENOSPC"), "volumeFull"],
    ["a quota of the file system", system("EDQUOT"), "volumeFull"],
    [
      "a full disk beneath two others",
      new Error("a", because(new Error("b", because(system("ENOSPC"))))),
      "volumeFull",
    ],
    ["a store on a full disk", new StoreError("diskFull", "full", because(sqlite(13))), "volumeFull"],
    [
      "a store that cannot be opened for lack of room",
      new StoreError("open", "damaged?", because(sqlite(4874))),
      "volumeFull",
    ],
    ["a task's files on a full disk", new TaskError("folder", "cannot be read", system("ENOSPC")), "volumeFull"],
    // memory
    ["the host's memory", system("ENOMEM"), "resource"],
    [
      "a worker's heap",
      new EngineError("worker", "the worker failed", because(system("ERR_WORKER_OUT_OF_MEMORY"))),
      "resource",
    ],
    ["a large array", new RangeError("Array buffer allocation failed"), "resource"],
    [
      "CUDA, as ONNX Runtime says it",
      new GraphError("session", "ONNX Runtime: CUDA failure 2: out of memory ; GPU=0"),
      "resource",
    ],
    [
      "CUDA's arena",
      new GraphError("session", "BFCArena: Failed to allocate memory for requested buffer of size 1"),
      "resource",
    ],
    [
      "CUDA through the worker",
      new EngineError("device", "cuda:0 cannot be used: the GPU's memory is full; end"),
      "resource",
    ],
    // disks, networks, devices
    ["an I/O error", system("EIO"), "infrastructure"],
    ["a volume remounted read-only", system("EROFS"), "infrastructure"],
    ["a stale handle of NFS", system("ESTALE"), "infrastructure"],
    ["a model whose disk fails", new ModelError("weights", "cannot be read", because(system("EIO"))), "infrastructure"],
    ["a store whose disk fails", new StoreError("io", "disk I/O error", because(sqlite(266))), "infrastructure"],
    ["a read-only store", new StoreError("readOnly", "its mount"), "infrastructure"],
    ["another learner has the volume", new StoreError("fenced", "stop"), "infrastructure"],
    ["a connection", system("ECONNRESET"), "infrastructure"],
    ["a name that is not resolved", system("EAI_AGAIN"), "infrastructure"],
    [
      "a GPU that fell off the bus",
      new GraphError("session", "ONNX Runtime: CUDA failure 719: unspecified launch"),
      "infrastructure",
      "input",
    ],
    [
      "a GPU that is gone",
      new EngineError("device", "cuda:0 cannot be used: the driver finds no GPU"),
      "infrastructure",
      "input",
    ],
    // the user's input
    ["the manifest", new ManifestError(["model.policy is x"]), "input"],
    ["a manifest that somebody has emptied", emptied(), "infrastructure"],
    ["the task", new TaskError("folder", "there is no such task"), "input"],
    ["the model", new ModelError("config", "no config.json", because(system("ENOENT"))), "input"],
    ["a prompt", new RolloutError("prompt", "too long"), "input"],
    ["an address", new ServerError("listen", "taken", because(system("EADDRINUSE"))), "fault", "input", "input"],
    ["a model that does not fit", new EngineError("memory", "needs 9 GB"), "fault", "input", "input"],
    // other failures
    ["a bug", new TypeError("undefined is not a function"), "fault"],
    ["a damaged store", new StoreError("io", "malformed", because(sqlite(11))), "fault"],
    ["a store's conflict", new StoreError("conflict", "two"), "fault"],
    ["leases that do not end", new ServerError("stalled", "no result"), "fault"],
    ["a worker that ended", new EngineError("worker", "has ended (134)"), "fault"],
    ["an error of a program's words", new Error("the program printed: out of memory"), "fault"],
    ["no error", "a text", "fault"],
  ];

for (const [name, error, training, firstStart = training, restart = training] of CASES)
  test(`${name}: ${training}${firstStart === training ? "" : `, at the first start ${firstStart}`}`, () => {
    const kinds = (["training", "firstStart", "restart"] as const).map((stage) => failureKind(error, stage));
    assert.deepEqual(kinds, [training, firstStart, restart]);
  });

test("each kind of failure has an exit status for a kubelet, and 1, 2 or 73 for longrun run", () => {
  const statuses = (stay: boolean, stage: "firstStart" | "training") =>
    [
      new TypeError("a bug"),
      new TaskError("folder", "there is no such task"),
      new EngineError("device", "cuda:0 cannot be used: the GPU's memory is full"),
      system("ENOSPC"),
      system("EIO"),
    ].map((error) => exitStatusOf(error, stage, stay));
  assert.deepEqual(statuses(true, "training"), [1, 2, 71, 73, 74]);
  assert.deepEqual(statuses(true, "firstStart"), [1, 2, 71, 73, 74]);
  assert.deepEqual(statuses(false, "firstStart"), [1, 2, 2, 73, 1]);
  assert.deepEqual(statuses(false, "training"), [1, 1, 1, 73, 1]);
});

test("an error that is its own cause is classified without an endless loop", () => {
  const error = new Error("round");
  error.cause = error;
  assert.equal(failureKind(error, "training"), "fault");
});

test("errors that the system throws are classified: a full device, a full heap, a full store", async (t) => {
  try {
    writeFileSync("/dev/full", "x");
  } catch (error) {
    assert.equal(failureKind(error, "training"), "volumeFull");
  }
  const worker = new Worker("const all = []; for (;;) all.push(new Array(1e5).fill({}));", {
    eval: true,
    resourceLimits: { maxOldGenerationSizeMb: 8 },
  });
  const error = await new Promise((resolve) => worker.on("error", resolve));
  assert.equal(failureKind(new EngineError("worker", "failed", because(error)), "training"), "resource");
  const folder = mkdtempSync(join(tmpdir(), "longrun-failures-"));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.throws(
    () => openStore(join(folder, "store.sqlite"), { maxBytes: 8192 }),
    (it) => failureKind(it, "firstStart") === "volumeFull",
  );
});
