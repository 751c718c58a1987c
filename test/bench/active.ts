/**
 * One controller with many runs that all train: each learner pushes its status like the real one, through the phases of one iteration per
 * minute. Measures the controller's costs, and how long important changes wait behind others.
 */
import { fork } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { TRAINING_RUN } from "../../controller/operator/kube/resources.ts";
import { API_SERVER, ensureBinaries } from "../cluster/binaries.ts";
import type { Order, Report } from "./active-learners.ts";
import { BenchWorld } from "./controller-world.ts";
import type { Bench, BenchResult } from "./result.ts";

const LEARNERS = fileURLToPath(new URL("./active-learners.ts", import.meta.url));
const WAIT_SECONDS = 300;

interface Round {
  runs: number;
  requestsPerSecond: number;
  reconcilesPerSecond: number;
  controllerCores: number;
  heapBytes: number;
  residentBytes: number;
  suspendMilliseconds: number[];
  phaseMilliseconds: number[];
}

async function measure(count: number, seconds: number, changes: number): Promise<Round> {
  const say = (what: string) => process.stderr.write(`  ${count} runs: ${what}\n`);
  const names = Array.from({ length: count }, (_, i) => `run-${i}`);
  const world = await BenchWorld.start(2000, 16, true);
  const learners = fork(LEARNERS, [world.kubeconfig]);
  const order = (it: Order) => learners.send(it);
  try {
    const ports: Record<string, number> = {};
    const [suspendedMs, evaluatesMs, shownMs] = [1, 2, 3].map(() => new Map<string, number>());
    learners.on("message", (it: Report) => {
      if ("suspended" in it) suspendedMs!.set(it.suspended, it.atMs);
      else if ("evaluates" in it) evaluatesMs!.set(it.evaluates, it.atMs);
      else {
        ports[`default/${it.run}`] = it.port;
        world.learnersAt({ [`default/${it.run}`]: it.port });
      }
    });
    world.onLearner = (serve) => order({ serve });
    await world.create(names);
    say("all have their learner and their actor");

    await world.restart(50, 8);
    world.learnersAt(ports);
    order({ iterate: true });
    await sleep(60_000);
    const before = { ...(await world.counters()), cpu: world.cpuSeconds() };
    await sleep(seconds * 1000);
    const after = await world.counters();
    const { controller } = world.coresSince(before.cpu, seconds);
    const memory = await world.memory();
    say(`${((after.requests - before.requests) / seconds).toFixed(1)} requests/s, ${controller!.toFixed(2)} cores`);

    const [suspended, evaluated] = [names.slice(0, changes), names.slice(changes, 2 * changes)];
    world.onRun = ({ metadata: { name }, status }) => {
      if (status?.phase === "Evaluating" && !shownMs!.has(name)) shownMs!.set(name, Date.now());
    };
    const askedMs = new Map<string, number>();
    for (const [i, name] of suspended.entries()) {
      askedMs.set(name, Date.now());
      await world.client.mergePatch(TRAINING_RUN, { namespace: "default", name }, { spec: { suspend: true } });
      order({ evaluate: [evaluated[i]!] });
      await sleep(500);
    }
    await until(() => suspendedMs!.size >= changes && shownMs!.size >= changes);
    return {
      runs: count,
      requestsPerSecond: (after.requests - before.requests) / seconds,
      reconcilesPerSecond: (after.reconciles - before.reconciles) / seconds,
      controllerCores: controller!,
      heapBytes: memory.heapUsed,
      residentBytes: memory.rss,
      suspendMilliseconds: suspended.map((name) => suspendedMs!.get(name)! - askedMs.get(name)!),
      phaseMilliseconds: evaluated.map((name) => shownMs!.get(name)! - evaluatesMs!.get(name)!),
    };
  } finally {
    learners.kill();
    await world.stop();
  }
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + WAIT_SECONDS * 1000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`not every change was followed within ${WAIT_SECONDS} s`);
    await sleep(50);
  }
}

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      runs: { type: "string", default: "100,1000" },
      seconds: { type: "string", default: "60" },
      changes: { type: "string", default: "40" },
    },
  });
  await ensureBinaries(API_SERVER, { log: (line) => process.stderr.write(`${line}\n`) });
  const rounds: Round[] = [];
  for (const runs of values.runs.split(",").map(Number))
    rounds.push(await measure(runs, Number(values.seconds), Number(values.changes)));
  return {
    rows: rounds.map(row),
    goals: rounds.flatMap((it) => [
      goal(`${it.runs} active runs: requests/s`, it.requestsPerSecond, 50, ""),
      goal(
        `${it.runs} active runs: p99 from suspend to the learner's call`,
        quantile(it.suspendMilliseconds, 0.99),
        1000,
        " ms",
      ),
    ]),
    method:
      "one controller process with its defaults (50 requests/s, burst 100, 8 workers), etcd, kube-apiserver and one process with all " +
      "learners (gRPC over TLS, the learner's own status board) on the same machine; an iteration takes 60 s in five phases, counts " +
      `change five times a second; after 60 s it is measured for ${values.seconds} s; then ${values.changes} runs are suspended and as many others change ` +
      "their phase, two a second",
    raw: rounds,
  };
}

function row({ runs, ...it }: Round) {
  return {
    runs,
    "requests/s": it.requestsPerSecond.toFixed(1),
    "reconciles/s": it.reconcilesPerSecond.toFixed(0),
    "controller's cores": it.controllerCores.toFixed(2),
    heap: `${(it.heapBytes / 2 ** 20).toFixed(0)} MiB`,
    resident: `${(it.residentBytes / 2 ** 20).toFixed(0)} MiB`,
    "suspend to call p50": `${quantile(it.suspendMilliseconds, 0.5).toFixed(0)} ms`,
    "its p99": `${quantile(it.suspendMilliseconds, 0.99).toFixed(0)} ms`,
    "phase to status p50": `${quantile(it.phaseMilliseconds, 0.5).toFixed(0)} ms`,
    "and p99": `${quantile(it.phaseMilliseconds, 0.99).toFixed(0)} ms`,
  };
}

const goal = (what: string, value: number, most: number, unit: string) => ({
  ...{ what, goal: `<= ${most}${unit}`, measured: `${value.toFixed(1)}${unit}`, met: value <= most },
});

function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}

export const active: Bench = { about: "one controller with 1,000 runs that all train, on a real API server", run };
