/**
 * `npm run bench [NAME …] [-- FLAGS of the benchmark]`: measures, prints a table and writes `results/DATE-NAME.json`.
 * A ratio compares two things that one run measures in turn, so that both run on the same machine.
 */
import { API_SERVER } from "../cluster/binaries.ts";
import { endWithout, unbuildable } from "../lane-tools.ts";
import { missingTools } from "../tools.ts";
import { active } from "./active.ts";
import { algorithms } from "./algorithms.ts";
import { busy } from "./busy.ts";
import { controller } from "./controller.ts";
import { corpus } from "./corpus.ts";
import { durations } from "./durations.ts";
import { generators } from "./generators.ts";
import { gpu } from "./gpu.ts";
import { grading } from "./grading.ts";
import { idle } from "./idle.ts";
import { learner } from "./learner.ts";
import { learning } from "./learning.ts";
import { overhead } from "./overhead.ts";
import { overlap } from "./overlap.ts";
import { queue } from "./queue.ts";
import { rehearsal } from "./rehearsal.ts";
import { type Bench, print, resultsOf, save, UsageError } from "./result.ts";
import { sft } from "./sft.ts";
import { soak } from "./soak.ts";

const BENCHES: Record<string, Bench> = {
  ...{ overhead, idle, busy, queue, durations, grading },
  ...{ overlap, generators, learner, gpu, rehearsal, active, controller, learning, algorithms, corpus, sft, soak },
};
/** These take long, so they run only when they are named. */
const ONLY_NAMED = [
  "overlap",
  "generators",
  "learner",
  "gpu",
  "rehearsal",
  "active",
  "controller",
  "learning",
  "algorithms",
  "corpus",
  "sft",
  "soak",
];

/** These run no programs, so they need no Python. */
const WITHOUT_PYTHON = ["overlap", "generators", "gpu", "rehearsal", "active", "controller"];
const ON_API_SERVER = ["active", "controller"];

const given = process.argv.slice(2);
const firstFlag = given.findIndex((word) => word.startsWith("-"));
const names = firstFlag < 0 ? given : given.slice(0, firstFlag);
const flags = firstFlag < 0 ? [] : given.slice(firstFlag);
const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0 || (flags.length > 0 && names.length !== 1)) {
  const list = Object.entries(BENCHES).map(([name, { about }]) => `  ${name.padEnd(11)}${about}`);
  const why =
    unknown.length > 0 ? `no benchmark is called ${unknown.join(", ")}` : "flags need the one benchmark they are of";
  process.stderr.write(`${why}; there are:\n${list.join("\n")}\n`);
  process.exit(2);
}
const chosen = names.length > 0 ? names : Object.keys(BENCHES).filter((name) => !ONLY_NAMED.includes(name));
if (chosen.some((name) => !WITHOUT_PYTHON.includes(name))) endWithout("bench", missingTools(["python3"]));
if (chosen.some((name) => ON_API_SERVER.includes(name))) endWithout("bench", unbuildable(API_SERVER));
for (const name of chosen) {
  const date = new Date();
  try {
    for await (const result of resultsOf(BENCHES[name]!, flags)) {
      print(name, result);
      if (result.kept !== false) process.stdout.write(`  written to ${await save(name, result, date)}\n`);
    }
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (!(error instanceof UsageError) && !code?.startsWith("ERR_PARSE_ARGS")) throw error;
    process.stderr.write(`${name}: ${message}\n`);
    process.exit(2);
  }
}
process.exit(0);
