/** What the sandbox costs a program, beside `python program.py` in the same environment and on the same data. */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { describeIsolation } from "../../actor/layers.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { findPublicData } from "../../actor/tasks.ts";
import { benchEnvironment } from "./environment.ts";
import { type Bench, median } from "./result.ts";

/** Each tells the seconds that it took itself, imports included, on its last line. */
const PROGRAMS: Record<string, string> = {
  "does nothing": "pass",
  "reads, fits, writes": `
import pandas as pd
from sklearn.linear_model import Ridge
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
numbers = ["carat", "depth", "table", "x", "y", "z"]
model = Ridge().fit(train[numbers], train["price"])
pd.DataFrame({"id": test["id"], "price": model.predict(test[numbers])}).to_csv("submission.csv", index=False)`,
};

const GOAL_MILLISECONDS = 20;

/** Milliseconds, one entry a block. */
interface Measured {
  ownInSandbox: number[];
  wallInSandbox: number[];
  ownBare: number[];
  wallBare: number[];
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: { blocks: { type: "string", default: "7" }, size: { type: "string", default: "8" } },
  });
  const { python, taskDirectory } = await benchEnvironment();
  const inputs = await findPublicData(taskDirectory);
  const task = Object.keys(inputs)[0]!;
  const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  const { sandbox } = await startIsolated({ python, inputs, space: join(directory, "space") });
  const measured: Record<string, Measured> = {};
  try {
    for (const [name, body] of Object.entries(PROGRAMS)) {
      const source = `import time\n_start = time.perf_counter()\n${body}\nprint("own", time.perf_counter() - _start)\n`;
      const program = Buffer.from(source);
      const inSandbox = async () => {
        const result = await execute(sandbox, { task, program, nonce: "", limits: DEFAULT_LIMITS, seed: 0 });
        const output = result.terminalOutput.toString();
        if (result.outcome !== "completed") throw new Error(`${name}: ${result.outcome}: ${result.detail} ${output}`);
        return ownMilliseconds(output);
      };
      const cwd = join(directory, "bare");
      await rm(cwd, { recursive: true, force: true });
      await mkdir(cwd);
      await symlink(inputs[task]!, join(cwd, "input"));
      await writeFile(join(cwd, "program.py"), source);
      const bare = async () => {
        return ownMilliseconds(execFileSync(python, ["program.py"], { cwd, encoding: "utf8" }));
      };
      const entry: Measured = { ownInSandbox: [], wallInSandbox: [], ownBare: [], wallBare: [] };
      measured[name] = entry;
      await inSandbox();
      await bare();
      for (let block = 0; block < Number(values.blocks); block++) {
        await time(inSandbox, Number(values.size), entry.ownInSandbox, entry.wallInSandbox);
        await time(bare, Number(values.size), entry.ownBare, entry.wallBare);
      }
    }
  } finally {
    await sandbox.stop();
    await rm(directory, { recursive: true, force: true });
  }
  const overheadOf = ({ ownInSandbox, wallInSandbox }: Measured) =>
    median(wallInSandbox.map((wall, i) => wall - ownInSandbox[i]!));
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const rows = Object.entries(measured).map(([program, entry]) => ({
    program,
    "sandbox: own": ms(median(entry.ownInSandbox)),
    "sandbox: wall": ms(median(entry.wallInSandbox)),
    "sandbox: overhead": ms(overheadOf(entry)),
    "bare: own": ms(median(entry.ownBare)),
    "bare: wall": ms(median(entry.wallBare)),
  }));
  const goals = Object.entries(measured).map(([program, entry]) => ({
    what: `overhead over the own time of a program that ${program}`,
    goal: `<= ${GOAL_MILLISECONDS} ms`,
    measured: ms(overheadOf(entry)),
    met: overheadOf(entry) <= GOAL_MILLISECONDS,
  }));
  const method =
    `isolation ${describeIsolation(sandbox.info)}; ${values.blocks} blocks of ${values.size} executions back to back, ` +
    "in turn with as many of python program.py; wall is a block's over its executions, cleaning up included; medians";
  return { rows, goals, method, raw: measured };
}

/** One block: mean own time and wall time of an execution. */
async function time(once: () => Promise<number>, size: number, own: number[], wall: number[]): Promise<void> {
  const start = performance.now();
  let total = 0;
  for (let i = 0; i < size; i++) total += await once();
  wall.push((performance.now() - start) / size);
  own.push(total / size);
}

function ownMilliseconds(output: string): number {
  const match = /^own (\S+)$/m.exec(output);
  if (!match) throw new Error(`the program did not tell its time: ${output}`);
  return Number(match[1]) * 1000;
}

export const overhead: Bench = { about: "an execution in the sandbox beside python program.py", run };
