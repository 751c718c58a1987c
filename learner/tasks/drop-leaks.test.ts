import assert from "node:assert/strict";
import { mkdtempDisposableSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mleBenchTask } from "../grading/mlebench-tasks.ts";
import { dropLeaks } from "./drop-leaks.ts";
import type { Task } from "./task.ts";
import { writeTaskFolder } from "./task-folder.fixture.ts";

test("a field that leaks is left out, and other numbers stay as they are written", () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "longrun-drop-"));
  const name = "random-acts-of-pizza";
  const mleBench = mleBenchTask(name)!;
  const records = '[{"id": 1712345678901234567, "score": 1.0, "giver_username_if_known": "x"}]';
  const files = Object.fromEntries(
    mleBench.files.filter((file) => file.endsWith(".json")).map((file) => [`prepared/public/${file}`, records]),
  );
  const directory = writeTaskFolder(join(folder.path, "task"), files);
  const out = join(folder.path, "out");
  dropLeaks({ name, directory, mleBench } as unknown as Task, out);
  for (const path of Object.keys(files))
    assert.equal(
      readFileSync(join(out, path), "utf8").replaceAll(/\s/g, ""),
      '[{"id":1712345678901234567,"score":1.0}]',
    );
});
