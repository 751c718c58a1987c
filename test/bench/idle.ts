/** Measures the memory of a waiting slot, and the time until it is ready. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { descendants } from "../../actor/descendants.fixture.ts";
import { startIsolated } from "../../actor/isolation.ts";
import type { Sandbox } from "../../actor/sandbox.ts";
import { findPublicData } from "../../actor/tasks.ts";
import { benchEnvironment } from "./environment.ts";
import { proportionalMemory } from "./process-memory.ts";
import { type Bench, median } from "./result.ts";

const GOAL_MEGABYTES = 60;
const LEVELS = ["namespaces", "landlock"] as const;
/** The child for the first program is made after the slot reports that it is ready. */
const SETTLE_SECONDS = 1;

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: { slots: { type: "string", default: "3" }, warm: { type: "string" } },
  });
  const { python, taskDirectory } = await benchEnvironment();
  const inputs = await findPublicData(taskDirectory);
  const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
  const slots = Number(values.slots);
  const warm = values.warm?.split(",").filter(Boolean);
  const measure = async (level: (typeof LEVELS)[number]) => {
    const sandboxes: Sandbox[] = [];
    const seconds: number[] = [];
    for (let slot = 0; slot < slots; slot++) {
      const start = performance.now();
      const space = join(directory, `${level}-${slot}`);
      sandboxes.push((await startIsolated({ python, inputs, space, level, warm })).sandbox);
      seconds.push((performance.now() - start) / 1000);
    }
    await sleep(SETTLE_SECONDS * 1000);
    const { all, anonymous, files } = proportionalMemory(descendants(process.pid)); // memory of the sandboxes, and of the process that they are forks of
    for (const sandbox of sandboxes) await sandbox.stop();
    const each = (bytes: number) => bytes / slots / 1e6;
    return { all: each(all), anonymous: each(anonymous), files: each(files), seconds };
  };
  try {
    const raw = { namespaces: await measure("namespaces"), landlock: await measure("landlock") };
    const megabytes = (value: number) => `${value.toFixed(0)} MB`;
    const rows = LEVELS.map((level) => ({
      level,
      "of a slot": megabytes(raw[level].all),
      "memory of its own": megabytes(raw[level].anonymous),
      "pages of files": megabytes(raw[level].files),
      "is there after": `${median(raw[level].seconds).toFixed(2)} s`,
    }));
    const goals = LEVELS.map((level) => ({
      what: `proportional set size of an idle slot at ${level}`,
      goal: `<= ${GOAL_MEGABYTES} MB`,
      measured: megabytes(raw[level].all),
      met: raw[level].all <= GOAL_MEGABYTES,
    }));
    const method =
      `${slots} slots side by side, ${warm ? `with ${warm.join(", ") || "nothing"} imported` : "packages as by default"}; proportional set size of ` +
      "all their processes over the number of slots; a start includes the attack that tries the level; median";
    return { rows, goals, method, raw };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export const idle: Bench = { about: "memory of a waiting slot, and its start", run };
