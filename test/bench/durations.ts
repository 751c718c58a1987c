/**
 * Durations are a training signal. Measures how much a program's duration changes under other load on the machine, by the clock of the
 * weights (the smaller of wall-clock and CPU seconds) and by the wall clock. Slots are placed on cores like in `longrun run`, beside a
 * learner of one thread.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import type { Sandbox } from "../../actor/sandbox.ts";
import { shareCpus } from "../../actor/slots.ts";
import { findPublicData } from "../../actor/tasks.ts";
import { actorCores, usableCores } from "../../controller/local/processes/cpus.ts";
import { sampleDuration } from "../../learner/rl/durations.ts";
import { benchEnvironment } from "./environment.ts";
import lengths from "./quickstart-lengths.json" with { type: "json" };
import { type Bench, median } from "./result.ts";
import { writeWork } from "./update-work.ts";

const UPDATES = fileURLToPath(new URL("./update.ts", import.meta.url));
const GENERATING = fileURLToPath(new URL("./generating.ts", import.meta.url));
const LEARNER_THREADS = 1;
const SLOTS = 2;
const GOAL = 0.1;

const PROGRAMS: Record<string, string> = {
  "counts in Python": "total = 0\nfor i in range(6_000_000):\n    total += i * i\n",
  "fits boosted trees": `
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor
train = pd.read_csv("input/train.csv").head(3000)
numbers = ["carat", "depth", "table", "x", "y", "z"]
GradientBoostingRegressor(n_estimators=40, random_state=0).fit(train[numbers], train["price"])`,
};

/** Seconds, one entry per round. */
type Measured = Record<"clock" | "wall", number[]>;
const SITUATIONS = [
  "nothing else runs",
  "the other slot runs too",
  "the learner trains",
  "both",
  "the learner generates",
] as const;
type Situation = (typeof SITUATIONS)[number];
const none = (): Measured => ({ clock: [], wall: [] });

async function run(flags: string[]) {
  const { values } = parseArgs({ args: flags, options: { rounds: { type: "string", default: "9" } } });
  const { python, taskDirectory } = await benchEnvironment();
  const inputs = await findPublicData(taskDirectory);
  const task = Object.keys(inputs)[0]!;
  const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  const cores = actorCores(usableCores(), LEARNER_THREADS, 1)?.[0]?.split(",").map(Number);
  const work = join(directory, "work");
  writeWork(work, {
    ...{ size: "quickstart", lengths: lengths.samples as [number, number][] },
    ...{ maxPromptTokens: lengths.maxPromptTokens, maxResponseTokens: lengths.maxResponseTokens },
  });
  const sandboxes: Sandbox[] = [];
  for (let slot = 0; slot < SLOTS; slot++) {
    const space = join(directory, `slot-${slot}`);
    const { sandbox } = await startIsolated({ python, inputs, space, ...shareCpus(cores, slot, SLOTS) });
    sandboxes.push(sandbox);
  }
  const [measured, other] = sandboxes as [Sandbox, Sandbox];
  const once = (sandbox: Sandbox, source: string) =>
    execute(sandbox, { task, program: Buffer.from(source), nonce: "", limits: DEFAULT_LIMITS, seed: 0 });
  const raw: Record<string, Record<Situation, Measured>> = {};
  try {
    for (const [name, source] of Object.entries(PROGRAMS)) {
      const entry: Record<Situation, Measured> = {
        "nothing else runs": none(),
        "the other slot runs too": none(),
        "the learner trains": none(),
        both: none(),
        "the learner generates": none(),
      };
      raw[name] = entry;
      await once(measured, source);
      for (let round = 0; round < Number(values.rounds); round++) {
        for (const situation of SITUATIONS) {
          const stop = await disturb(situation, () => once(other, source), work);
          const result = await once(measured, source);
          await stop();
          if (result.outcome !== "completed") throw new Error(`${name}: ${result.outcome}: ${result.detail}`);
          const options = {
            durationWeighting: "Paper",
            durationCap: 1,
            startupSeconds: 0,
            timeoutWeight: "Full",
          } as const;
          entry[situation].clock.push(sampleDuration(result, { ...options, durationClock: "Active" }));
          entry[situation].wall.push(result.durationSeconds);
        }
      }
    }
  } finally {
    for (const sandbox of sandboxes) await sandbox.stop();
    await rm(directory, { recursive: true, force: true });
  }
  const apart = (entry: Record<Situation, Measured>, situation: Situation, clock: keyof Measured) =>
    median(entry[situation][clock].map((seconds, round) => seconds / entry["nothing else runs"][clock][round]!)) - 1;
  const percent = (share: number) => `${share >= 0 ? "+" : ""}${(100 * share).toFixed(1)} %`;
  const rows = Object.entries(raw).flatMap(([name, entry]) =>
    SITUATIONS.map((situation) => ({
      "a program that": name,
      while: situation,
      "seconds by the clock of weights": median(entry[situation].clock).toFixed(3),
      apart: percent(apart(entry, situation, "clock")),
      "by the wall": median(entry[situation].wall).toFixed(3),
      "wall apart": percent(apart(entry, situation, "wall")),
    })),
  );
  const goals = Object.entries(raw).map(([name, entry]) => {
    const most = Math.max(...SITUATIONS.map((situation) => Math.abs(apart(entry, situation, "clock"))));
    return {
      what: `duration of a program that ${name}, whatever else runs`,
      goal: `<= ${100 * GOAL} % apart`,
      measured: `${(100 * most).toFixed(1)} %`,
      met: most <= GOAL,
    };
  });
  const method =
    `${values.rounds} rounds of the situations in turn; ${SLOTS} slots of one actor on core ${cores?.join(", ") ?? "any"}, a learner that ` +
    `repeats PPO updates, or generates 64 rows side by side, with ${LEARNER_THREADS} thread; medians, and of each round the ratio to its own undisturbed time`;
  return { rows, goals, method, raw };
}

/** Starts another load. @returns a function that ends it */
async function disturb(
  situation: Situation,
  inOtherSlot: () => Promise<unknown>,
  work: string,
): Promise<() => Promise<void>> {
  let going = situation === "the other slot runs too" || situation === "both";
  const beside = (async () => {
    while (going) await inOtherSlot();
  })();
  const training = situation === "the learner trains" || situation === "both";
  const generating = situation === "the learner generates";
  const learner = training ? await startTraining(work) : generating ? await startGenerating() : undefined;
  return async () => {
    going = false;
    await beside;
    if (learner?.exitCode === null) {
      learner.kill("SIGKILL");
      await new Promise((resolve) => learner.once("exit", resolve));
    }
  };
}

/** Resolves when generation has begun. */
async function startGenerating(): Promise<ChildProcess> {
  const child = fork(GENERATING, [String(LEARNER_THREADS)]);
  await once(child, "message");
  return child;
}

/** Resolves when one update is done and the next one runs. */
async function startTraining(folder: string): Promise<ChildProcess> {
  const args = ["--folder", folder, "--threads", String(LEARNER_THREADS)];
  const child = fork(UPDATES, args, { stdio: ["pipe", "pipe", "inherit", "ipc"] });
  await new Promise<void>((resolve, reject) => {
    let answers = 0;
    createInterface({ input: child.stdout! }).on("line", () => {
      child.stdin!.write("\n");
      if (++answers === 2) resolve();
    });
    child.once("exit", (code) => reject(new Error(`${UPDATES} exited with ${code}`)));
  });
  return child;
}

export const durations: Bench = { about: "a program's duration while other slots and the learner are busy", run };
