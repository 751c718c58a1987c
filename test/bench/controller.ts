/**
 * Measures the controller with thousands of TrainingRuns on a real API server: how fast children are created, how fast a pod's change
 * becomes a status, and the memory of a cached pod. A stub replaces the learners (which always report one running execution) and the
 * kubelets (it writes pods and their statuses). The API server is real.
 */
import { parseArgs } from "node:util";
import { API_SERVER, ensureBinaries } from "../cluster/binaries.ts";
import { perSecond, type Round } from "./controller-round.ts";
import { STUB_PARALLEL } from "./controller-stub.ts";
import { BenchWorld } from "./controller-world.ts";
import { describeCores } from "./cores.ts";
import type { Bench, BenchResult, Goal } from "./result.ts";

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      runs: { type: "string", default: "1000,5000" },
      qps: { type: "string", default: "2000" },
      workers: { type: "string", default: "16" },
      rate: { type: "string", default: "50" },
      seconds: { type: "string", default: "20" },
    },
  });
  await ensureBinaries(API_SERVER, { log: (line) => process.stderr.write(`${line}\n`) });
  const rounds: Round[] = [];
  for (const runs of values.runs.split(",").map(Number)) {
    const world = await BenchWorld.start(Number(values.qps), Number(values.workers));
    try {
      rounds.push(await world.measure(runs, Number(values.rate), Number(values.seconds)));
    } finally {
      await world.stop();
    }
  }
  return {
    rows: rounds.map(row),
    goals: rounds.flatMap(goalsOf),
    method:
      `one controller process (--qps ${values.qps}, ${values.workers} workers), etcd, kube-apiserver and the stub on the same machine; ` +
      "a change takes an actor's pod from running to an image that cannot be pulled, or back, and ends in a status; the burst is of " +
      `one change for each run, ${STUB_PARALLEL} on their way at once; latency is from the pod's event to the event of the ` +
      `written status, both seen by one watcher, at ${values.rate} changes/s for ${values.seconds} s; bytes of a cached pod are the heap's growth ` +
      `by as many pods again of actors, after a collection. ${rounds.map(bottleneck).join(" ")}`,
    raw: rounds,
  };
}

function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

function row({
  runs,
  creations,
  creationSeconds,
  burst,
  direct,
  steady,
  bytesPerPod,
  heapBytes,
  residentBytes,
  pods,
  requestsPerRun,
}: Round) {
  return {
    runs,
    "pods cached": pods,
    "creations/s": (creations / creationSeconds).toFixed(0),
    "requests to start a run": requestsPerRun.toFixed(1),
    "status reconciles/s": perSecond(burst).toFixed(0),
    "without a controller": perSecond(direct).toFixed(0),
    "reconciles per change": (burst.reconciles / burst.changes).toFixed(2),
    "requests per reconcile": (burst.requests / burst.reconciles).toFixed(2),
    "event to write p50": `${quantile(steady.milliseconds, 0.5).toFixed(0)} ms`,
    p99: `${quantile(steady.milliseconds, 0.99).toFixed(0)} ms`,
    "bytes per pod": growth(bytesPerPod),
    heap: `${(heapBytes / 2 ** 20).toFixed(0)} MiB`,
    resident: `${(residentBytes / 2 ** 20).toFixed(0)} MiB`,
  };
}

/** For a small count the heap's own fluctuation exceeds the memory of its pods. */
const growth = (bytes: number) => (bytes > 0 ? `${bytes.toFixed(0)} B` : "none that can be seen");

function goalsOf({ runs, burst, steady, bytesPerPod }: Round): Goal[] {
  const p99 = quantile(steady.milliseconds, 0.99);
  return [
    {
      what: `${runs} runs: reconciles/s that follow a status change and end in a write`,
      goal: "> 100",
      measured: perSecond(burst).toFixed(0),
      met: perSecond(burst) > 100,
    },
    {
      what: `${runs} runs: p99 from watch event to write`,
      goal: "< 300 ms",
      measured: `${p99.toFixed(0)} ms`,
      met: p99 < 300,
    },
    {
      what: `${runs} runs: memory of a cached pod`,
      goal: "< 8192 B",
      measured: growth(bytesPerPod),
      met: bytesPerPod < 8192,
    },
  ];
}

/** Names the process that uses the processor while changes come as fast as possible. */
function bottleneck({ runs, burst, direct }: Round): string {
  const [most] = Object.entries(burst.cores).sort((a, b) => b[1] - a[1])[0]!;
  const alone = `it takes ${perSecond(direct).toFixed(0)}/s of the same two writes (a pod's status, a run's status) with no controller in between`;
  return `In the burst of ${runs} the cores were with ${describeCores(burst.cores)}: the bottleneck is ${most}; ${alone}.`;
}

export const controller: Bench = {
  about: "the controller with 1,000 and 5,000 TrainingRuns on a real API server",
  run,
};
