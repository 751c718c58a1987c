/**
 * Reads the event files with TensorBoard itself, also while a learner goes back to an iteration and continues. Needs a Python with the
 * package `tensorboard`: python3, or TENSORBOARD_PYTHON.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { writeMadeUpRun } from "../report/made-up-run.fixture.ts";
import { scratchFolder } from "../store/store.fixture.ts";
import { readMetrics } from "./jsonl.ts";
import { scalarsOf, TensorBoardFile } from "./tensorboard.ts";

const PYTHON = process.env.TENSORBOARD_PYTHON ?? "python3";
const isInstalled = spawnSync(PYTHON, ["-c", "import tensorboard"]).status === 0;
const skip = isInstalled
  ? false
  : `${PYTHON} has no tensorboard: pip install tensorboard, or name another in TENSORBOARD_PYTHON`;

/** For each line on stdin: reads new events, and prints every scalar as `{tag: [[step, wall time, value], …]}`. */
const READ = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator, SCALARS
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator as Plugin
from tensorboard.util import tensor_util
old = EventAccumulator(sys.argv[1], size_guidance={SCALARS: 0})
new = Plugin(sys.argv[1], size_guidance={"tensors": 0}, tensor_size_guidance={"scalars": 0})
for _ in sys.stdin:
  old.Reload(); new.Reload()
  scalars = {tag: [[e.step, e.wall_time, e.value] for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]}
  tensors = {tag: [[e.step, e.wall_time, float(tensor_util.make_ndarray(e.tensor_proto))] for e in new.Tensors(tag)]
             for tag in new.Tags()["tensors"]}
  print(json.dumps([scalars, tensors]), flush=True)
`;

test("TensorBoard reads every scalar, and forgets what a restart took back", { skip }, async (t) => {
  const run = scratchFolder();
  await writeMadeUpRun(run, { iterations: 6, finished: 6, state: "succeeded" });
  const lines = await readMetrics(join(run, "metrics.jsonl"));
  const directory = join(run, "tensorboard");
  const reader = spawn(PYTHON, ["-c", READ, directory], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => reader.kill());
  const answers = createInterface({ input: reader.stdout })[Symbol.asyncIterator]();
  const read = async () => {
    reader.stdin.write("\n");
    return JSON.parse((await answers.next()).value!) as [object, object];
  };
  const expected = (upTo: typeof lines) => {
    const series: Record<string, [number, number, number][]> = {};
    for (const line of upTo)
      for (const [tag, value] of scalarsOf(line))
        series[tag] = [...(series[tag] ?? []), [line.iteration, Date.parse(line.wallTime) / 1000, Math.fround(value)]];
    return series;
  };
  const check = async (upTo: typeof lines) => {
    const [scalars, tensors] = await read();
    assert.deepEqual(scalars, expected(upTo));
    assert.deepEqual(tensors, expected(upTo));
  };

  const first = await TensorBoardFile.open(directory, []);
  for (const line of lines.slice(0, 3)) await first.append(line);
  await check(lines.slice(0, 3));
  await first.append(lines[3]!);
  await check(lines.slice(0, 4));
  await first.close();

  // The restart went back to iteration 2.
  const second = await TensorBoardFile.open(directory, lines.slice(0, 2));
  await second.append(lines[2]!);
  await check(lines.slice(0, 3));
  for (const line of lines.slice(3)) await second.append(line);
  await check(lines);
  await second.close();
  reader.stdin.end();
  await once(reader, "exit");
});
