/** Runs many executions through one real actor and looks for growth: measured from outside after each round, when nothing runs. */
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { descendants } from "../../actor/descendants.fixture.ts";
import { Backlog } from "./backlog.ts";
import { benchEnvironment } from "./environment.ts";
import { kilobytes, proportionalMemory } from "./process-memory.ts";
import type { Bench } from "./result.ts";
import {
  COMPARISON,
  countQueries,
  growthOf,
  megabytes,
  rounded,
  type Shown,
  soakIterations,
  wholeBytes,
} from "./soak-run.ts";

/** In turn: programs that leave much behind, between programs that leave nothing. */
const PROGRAMS = [
  "pass\n",
  'open("submission.csv", "w").write("id,price\\n" + "1,2\\n" * 5000)\n',
  'import pandas as pd\npd.DataFrame({"id": range(2000)}).to_csv("submission.csv", index=False)\n',
  "import tempfile\nfor i in range(50):\n    tempfile.NamedTemporaryFile(delete=False).write(b'x' * 1000)\n",
  'print("x" * 100_000)\nraise ValueError("that is that")\n',
  "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n",
  "import threading, time\nfor i in range(8):\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
  "import numpy\nkept = numpy.ones((4_000_000,))\n",
];
/** The last program's result arrives before its namespaces are gone, and while the child for the next program is made. */
const SETTLE_SECONDS = 0.5;

/** Measurements of an actor's processes together, or of the machine. */
interface Look {
  executions: number;
  /** Memory without pages of files, whose proportional share depends on the machine's other processes. */
  supervisorBytes: number;
  sandboxBytes: number;
  descriptors: number;
  processes: number;
  /** Files and folders below its scratch directory. */
  files: number;
  mounts: number;
  /** Memory of the kernel, which includes remains of namespaces. */
  kernelBytes: number;
  learnerBytes: number;
  /** For each execution of the round: the store's growth, its statements, and their time without commits. */
  storeBytes: number;
  queries: number;
  queryMicroseconds: number;
}

const SHOWN: Shown<Look>[] = [
  { what: "memory of the sandboxes", field: "sandboxBytes", show: megabytes, growth: 0.02 },
  // Its garbage collector returns memory late.
  { what: "memory of the supervisor", field: "supervisorBytes", show: megabytes, growth: 0.1 },
  { what: "descriptors of the actor with its sandboxes", field: "descriptors", show: String, growth: 0 },
  { what: "processes and threads of the actor with its sandboxes", field: "processes", show: String, growth: 0 },
  { what: "files below the actor's scratch directory", field: "files", show: String, growth: 0 },
  { what: "mounts of the actor with its sandboxes", field: "mounts", show: String, growth: 0 },
  { what: "the store's growth by each execution", field: "storeBytes", show: wholeBytes, growth: 0.02, increase: true },
  { what: "the store's statements for each execution", field: "queries", show: rounded, growth: 0.02 },
  // A query that reads every sample would take seven times as long.
  {
    what: "their processor time, without commits",
    field: "queryMicroseconds",
    show: (us) => `${us.toFixed(0)} µs`,
    growth: 0.5,
  },
  { what: "memory of the kernel that it cannot give back", field: "kernelBytes", show: megabytes },
  { what: "memory of the learner's process (resident)", field: "learnerBytes", show: megabytes },
];

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      programs: { type: "string", default: "10000" },
      rounds: { type: "string", default: "20" },
      slots: { type: "string", default: "2" },
      isolation: { type: "string" },
      iterations: { type: "string" },
    },
  });
  if (values.iterations !== undefined) return soakIterations(Number(values.iterations));
  const rounds = Number(values.rounds);
  const each = Math.ceil(Number(values.programs) / rounds);
  const { environment, taskDirectory } = await benchEnvironment();
  const backlog = await Backlog.start([]);
  const counted = countQueries(StatementSync);
  const looks: Look[] = [];
  const started = performance.now();
  try {
    const [actor] = await backlog.startActors(1, {
      ...{ slots: Number(values.slots), environment, taskDirectory, isolation: values.isolation },
    });
    // The first round is not measured: it loads modules and takes memory that stays.
    for (let round = 0; round <= rounds; round++) {
      const before = { ...counted, bytes: statSync(backlog.storeFile).size };
      await backlog.add(Array.from({ length: each }, (_, index) => PROGRAMS[index % PROGRAMS.length]!));
      await sleep(SETTLE_SECONDS * 1000);
      looks.push({
        ...look(actor!.pid!, backlog.scratchOf(0), (round + 1) * each),
        storeBytes: (statSync(backlog.storeFile).size - before.bytes) / each,
        queries: (counted.queries - before.queries) / each,
        queryMicroseconds: ((counted.milliseconds - before.milliseconds) / each) * 1000,
      });
    }
  } finally {
    await backlog.close();
  }
  const seconds = (performance.now() - started) / 1000;
  const method =
    `${each * (rounds + 1)} executions in ${seconds.toFixed(0)} s by one actor with ${values.slots} slots, ${PROGRAMS.length} programs in turn; after each of ` +
    `${rounds} rounds, a first one left out, everything is looked at while nothing runs; ${COMPARISON}`;
  return { ...growthOf(looks.slice(1), SHOWN), method, raw: looks };
}

function look(
  pid: number,
  scratch: string,
  executions: number,
): Omit<Look, "storeBytes" | "queries" | "queryMicroseconds"> {
  const sandboxes = descendants(pid);
  const pids = [pid, ...sandboxes];
  const sum = (count: (pid: number) => number) => pids.reduce((total, one) => total + count(one), 0);
  return {
    executions,
    supervisorBytes: proportionalMemory([pid]).anonymous,
    sandboxBytes: proportionalMemory(sandboxes).anonymous,
    descriptors: sum((one) => readdirSync(`/proc/${one}/fd`).length),
    processes: sum((one) => readdirSync(`/proc/${one}/task`).length),
    files: readdirSync(scratch, { recursive: true }).length,
    mounts: new Set(pids.flatMap((one) => mountsOf(one, scratch))).size,
    kernelBytes: kilobytes("/proc/meminfo", "SUnreclaim"),
    learnerBytes: process.memoryUsage.rss(),
  };
}

/** Returns the mounts of a process's namespace; in the machine's own namespace, only mounts that name `scratch`. */
function mountsOf(pid: number, scratch: string): string[] {
  const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trim().split("\n");
  const own = namespace === readlinkSync("/proc/self/ns/mnt");
  return mounts.filter((line) => !own || line.includes(scratch)).map((line) => `${namespace} ${line.split(" ")[0]}`);
}

export const soak: Bench = {
  about: "growth over many executions, or with `--iterations N` over many iterations of a run",
  run,
};
