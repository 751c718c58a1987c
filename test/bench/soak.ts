/** Runs many executions through one real actor and looks for growth: measured from outside after each round, when nothing runs. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { descendants } from "../../actor/descendants.fixture.ts";
import { Backlog } from "./backlog.ts";
import { benchEnvironment } from "./environment.ts";
import { kilobytes, proportionalMemory } from "./process-memory.ts";
import { type Bench, median } from "./result.ts";

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
/** Largest allowed growth of memory, as a share: the supervisor's garbage collector takes its time. */
const GROWTH: Partial<Record<keyof Look, number>> = { sandboxBytes: 0.02, supervisorBytes: 0.1 };

/** The last program's result arrives before its namespaces are gone, and while the child for the next program is made. */
const SETTLE_SECONDS = 0.5;

/** Measurements of an actor's processes together, or of the machine. */
interface Look {
  executions: number;
  /** Proportional set sizes. */
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
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      programs: { type: "string", default: "10000" },
      rounds: { type: "string", default: "20" },
      slots: { type: "string", default: "2" },
      isolation: { type: "string" },
    },
  });
  const rounds = Number(values.rounds);
  const each = Math.ceil(Number(values.programs) / rounds);
  const { environment, taskDirectory } = await benchEnvironment();
  const backlog = await Backlog.start([]);
  const looks: Look[] = [];
  const started = performance.now();
  try {
    const [actor] = await backlog.startActors(1, {
      ...{ slots: Number(values.slots), environment, taskDirectory, isolation: values.isolation },
    });
    // The first round is not measured: it loads modules and takes memory that stays.
    for (let round = 0; round <= rounds; round++) {
      await backlog.add(Array.from({ length: each }, (_, index) => PROGRAMS[index % PROGRAMS.length]!));
      await sleep(SETTLE_SECONDS * 1000);
      looks.push(look(actor!.pid!, backlog.scratchOf(0), (round + 1) * each));
    }
  } finally {
    await backlog.close();
  }
  const seconds = (performance.now() - started) / 1000;
  const first = looks.slice(1, 1 + Math.ceil(rounds / 4));
  const last = looks.slice(-Math.ceil(rounds / 4));
  const of = (some: Look[], field: keyof Look) => median(some.map((one) => one[field]));
  const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const shown: [name: string, field: keyof Look, show: (value: number) => string, held: boolean][] = [
    ["memory of the sandboxes (proportional set size)", "sandboxBytes", megabytes, true],
    ["memory of the supervisor", "supervisorBytes", megabytes, true],
    ["descriptors of the actor with its sandboxes", "descriptors", String, true],
    ["processes and threads of the actor with its sandboxes", "processes", String, true],
    ["files below the actor's scratch directory", "files", String, true],
    ["mounts of the machine", "mounts", String, true],
    ["memory of the kernel that it cannot give back", "kernelBytes", megabytes, false],
    ["memory of the learner's process (resident)", "learnerBytes", megabytes, false],
  ];
  const rows = shown.map(([what, field, show]) => ({
    what,
    "first quarter": show(of(first, field)),
    "last quarter": show(of(last, field)),
  }));
  const goals = shown
    .filter(([, , , held]) => held)
    .map(([what, field, show]) => {
      const [before, after] = [of(first, field), of(last, field)];
      const growth = GROWTH[field] ?? 0;
      return {
        what,
        goal: growth > 0 ? `grows by at most ${100 * growth} %` : "does not grow",
        measured: `${show(before)} -> ${show(after)}`,
        met: after <= (1 + growth) * before,
      };
    });
  const method =
    `${each * (rounds + 1)} executions in ${seconds.toFixed(0)} s by one actor with ${values.slots} slots, ${PROGRAMS.length} programs in turn; after each of ` +
    `${rounds} rounds, a first one left out, everything is looked at while nothing runs; medians of the first and of the last quarter`;
  return { rows, goals, method, raw: looks };
}

function look(pid: number, scratch: string, executions: number): Look {
  const sandboxes = descendants(pid);
  const pids = [pid, ...sandboxes];
  const sum = (count: (pid: number) => number) => pids.reduce((total, one) => total + count(one), 0);
  return {
    executions,
    supervisorBytes: proportionalMemory([pid]).all,
    sandboxBytes: proportionalMemory(sandboxes).all,
    descriptors: sum((one) => readdirSync(`/proc/${one}/fd`).length),
    processes: sum((one) => readdirSync(`/proc/${one}/task`).length),
    files: readdirSync(scratch, { recursive: true }).length,
    mounts: new Set(readdirSync("/proc").filter(isPid).flatMap(mountsOf)).size,
    kernelBytes: kilobytes("/proc/meminfo", "SUnreclaim"),
    learnerBytes: process.memoryUsage.rss(),
  };
}

const isPid = (name: string) => /^\d+$/.test(name);

/** Returns, for each mount namespace with a process in it, its mounts. */
function mountsOf(pid: string): string[] {
  try {
    const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trim().split("\n");
    return mounts.map((line) => `${namespace} ${line.split(" ")[0]}`);
  } catch {
    return []; // the process has ended
  }
}

export const soak: Bench = { about: "what grows over ten thousand executions", run };
