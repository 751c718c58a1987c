/**
 * The learners of `bench active`, all in one process: each run has a server with the run's certificates and the real learner's status
 * board, which goes through iterations. There is no model, store or actor.
 */
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { KubeConfig } from "@kubernetes/client-node";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { SECRET, type Secret } from "../../controller/operator/kube/resources.ts";
import { Phase, StatusBoard } from "../../learner/server/status.ts";
import {
  channelOptions,
  type LearnerControlHandlers,
  LearnerControlService,
  LearnerStatusService,
} from "../../proto/service.ts";

/** Seconds of each phase of an iteration. */
const PHASES: [phase: number, seconds: number][] = [
  [Phase.GENERATING, 20],
  [Phase.EXECUTING, 20],
  [Phase.EVALUATING, 4],
  [Phase.TRAINING, 14],
  [Phase.CHECKPOINTING, 2],
];
/** How often counts change, per second. */
const CHANGES_PER_SECOND = 5;
const SAMPLES = 16;

/** Orders of the parent: serve a learner; all begin to iterate; these evaluate. */
export type Order = { serve: string } | { iterate: true } | { evaluate: string[] };
/** Reports to the parent: it listens; it was told to suspend, and when (Unix milliseconds); it evaluates. */
export type Report =
  | { run: string; port: number }
  | { suspended: string; atMs: number }
  | { evaluates: string; atMs: number };

const report = (it: Report) => process.send!(it);
const config = new KubeConfig();
config.loadFromFile(process.argv[2]!);
const client = new ApiClient(config, { qps: 1e6, burst: 1e6 });
interface Learner {
  board: StatusBoard;
  executions: { running: number; queued: number; completed: number };
}
const boards = new Map<string, Learner>();
const evaluating = new Set<string>();

process.on("disconnect", () => process.exit(0));
process.on("message", (order: Order) => {
  if ("serve" in order) void serve(order.serve);
  else if ("iterate" in order) for (const [run, learner] of boards) void iterate(run, learner);
  else for (const run of order.evaluate) evaluate(run);
});

async function serve(run: string): Promise<void> {
  const { data } = await secretOf(run);
  const file = (name: string) => Buffer.from(data?.[name] ?? "", "base64");
  const board = new StatusBoard();
  const executions = { running: 1, queued: 0, completed: 0 };
  board.addSource(() => ({ executions }));
  board.update({ phase: Phase.EXECUTING, iteration: 1, iterations: 100 });
  const server = new grpc.Server(channelOptions());
  server.addService(LearnerStatusService, board.handlers);
  server.addService(LearnerControlService, {
    drainActors: (_, answer) => answer(null, {}),
    reportTerminations: (_, answer) => answer(null, {}),
    suspend: (_, answer) => {
      report({ suspended: run, atMs: Date.now() });
      answer(null, {});
    },
  } satisfies LearnerControlHandlers);
  const pair = { private_key: file("tls.key"), cert_chain: file("tls.crt") };
  const credentials = grpc.ServerCredentials.createSsl(file("ca.crt"), [pair], true);
  server.bindAsync("127.0.0.1:0", credentials, (error, port) => {
    if (error) throw error;
    boards.set(run, { board, executions });
    report({ run, port });
  });
}

async function secretOf(run: string): Promise<Secret> {
  for (;;) {
    const secret = await client.get<Secret>(SECRET, { namespace: "default", name: `${run}-learner-tls` });
    if (secret) return secret;
    await sleep(200);
  }
}

/** Iterates, starting somewhere within an iteration. */
async function iterate(run: string, { board, executions }: Learner): Promise<void> {
  await sleep(Math.random() * 1000 * PHASES.reduce((sum, [, seconds]) => sum + seconds, 0));
  for (let iteration = 1; ; iteration++) {
    for (const [phase, seconds] of PHASES) {
      if (evaluating.has(run)) return;
      board.update({ phase, iteration, phaseTotal: SAMPLES });
      for (let change = 1; change <= seconds * CHANGES_PER_SECOND && !evaluating.has(run); change++) {
        await sleep(1000 / CHANGES_PER_SECOND);
        const running = phase === Phase.EXECUTING ? 1 : 0;
        Object.assign(executions, { running, queued: running, completed: executions.completed + running });
        board.update({ phaseDone: change % SAMPLES });
      }
    }
    const line = { iteration, lineage: 1, elapsedSeconds: 60 * iteration, meanScore: 900, validFraction: 0.5 };
    board.update({ iterationJson: JSON.stringify({ ...line, more: "x".repeat(3000) }) });
  }
}

function evaluate(run: string): void {
  evaluating.add(run);
  boards.get(run)!.board.update({ phase: Phase.FINAL_EVALUATION });
  report({ evaluates: run, atMs: Date.now() });
}
