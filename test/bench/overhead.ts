/** Measures the sandbox's overhead, compared with `python program.py` in the same environment on the same data. */
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { describeIsolation } from "../../actor/layers.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { findPublicData } from "../../actor/tasks.ts";
import { benchEnvironment } from "./environment.ts";
import { type Bench, median, quantile } from "./result.ts";

/** Each program prints its own seconds, including imports, on its last line. */
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

const GOAL = { p50: 15, p99: 50 };
const LEVELS = ["namespaces", "landlock"] as const;

/** Milliseconds, one entry per execution. */
interface Measured {
  /** The program's own time, as it reports it. */
  own: number[];
  /** Time from the request to the result, including the clean-up. */
  wall: number[];
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      executions: { type: "string", default: "300" },
      bare: { type: "string", default: "8" },
      warm: { type: "string" },
    },
  });
  const warm = values.warm?.split(",").filter(Boolean);
  const { python, taskDirectory } = await benchEnvironment();
  const inputs = await findPublicData(taskDirectory);
  const task = Object.keys(inputs)[0]!;
  const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  await chmod(directory, 0o755); // at landlock programs may run as nobody, if nobody can access it
  const raw: Record<string, Record<string, Measured>> = {};
  const isolation: string[] = [];
  const sourceOf = (body: string) =>
    `import time\n_start = time.perf_counter()\n${body}\nprint("own", time.perf_counter() - _start)\n`;
  try {
    for (const level of LEVELS) {
      const { sandbox } = await startIsolated({ python, inputs, space: join(directory, level), level, warm });
      isolation.push(describeIsolation(sandbox.info));
      raw[level] = {};
      for (const [name, body] of Object.entries(PROGRAMS)) {
        const program = Buffer.from(sourceOf(body));
        raw[level][name] = await measure(Number(values.executions), async () => {
          const result = await execute(sandbox, { task, program, nonce: "", limits: DEFAULT_LIMITS, seed: 0 });
          const output = result.terminalOutput.toString();
          if (result.outcome !== "completed") throw new Error(`${name}: ${result.outcome}: ${result.detail} ${output}`);
          return ownMilliseconds(output);
        });
      }
      await sandbox.stop();
    }
    raw["python program.py"] = {};
    for (const [name, body] of Object.entries(PROGRAMS)) {
      const cwd = join(directory, "bare");
      await rm(cwd, { recursive: true, force: true });
      await mkdir(cwd);
      await symlink(inputs[task]!, join(cwd, "input"));
      await writeFile(join(cwd, "program.py"), sourceOf(body));
      raw["python program.py"][name] = await measure(Number(values.bare), async () =>
        ownMilliseconds(execFileSync(python, ["program.py"], { cwd, encoding: "utf8" })),
      );
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  const overheads = ({ own, wall }: Measured) => wall.map((each, index) => each - own[index]!);
  const rows = Object.entries(raw).flatMap(([where, programs]) =>
    Object.entries(programs).map(([program, measured]) => ({
      "a program that": program,
      where,
      "its own time": ms(median(measured.own)),
      "from request to result": ms(median(measured.wall)),
      "overhead p50": ms(median(overheads(measured))),
      p99: where === "python program.py" ? "" : ms(quantile(overheads(measured), 0.99)),
    })),
  );
  const goals = LEVELS.flatMap((level) =>
    Object.entries(raw[level]!).flatMap(([name, measured]) =>
      (["p50", "p99"] as const).map((which) => {
        const value = which === "p50" ? median(overheads(measured)) : quantile(overheads(measured), 0.99);
        return {
          what: `${which} of the overhead over the own time of a program that ${name}, at ${level}`,
          goal: `<= ${GOAL[which]} ms`,
          measured: ms(value),
          met: value <= GOAL[which],
        };
      }),
    ),
  );
  const method =
    `${isolation.join("; ")}; ${values.executions} executions back to back at each level, ${values.bare} of python program.py; from request to ` +
    `result everything is cleaned up; ${warm ? `warm: ${warm.join(", ") || "nothing"}` : "packages warm"}, one slot, no learner`;
  return { rows, goals, method, raw };
}

/** @param once returns the program's own time */
async function measure(count: number, once: () => Promise<number>): Promise<Measured> {
  const measured: Measured = { own: [], wall: [] };
  await once(); // files are read for the first time
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    measured.own.push(await once());
    measured.wall.push(performance.now() - start);
  }
  return measured;
}

function ownMilliseconds(output: string): number {
  const match = /^own (\S+)$/m.exec(output);
  if (!match) throw new Error(`the program did not tell its time: ${output}`);
  return Number(match[1]) * 1000;
}

export const overhead: Bench = { about: "an execution in the sandbox beside python program.py", run };
