/** Iterations with the real collection, rollout, store and server, real clients as actors, and an engine of the benchmark's. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Algorithm, TrainingRunSpec } from "../../crds/trainingrun.ts";
import { collect } from "../../learner/collect.ts";
import type { Engine } from "../../learner/engine/index.ts";
import { createLog } from "../../learner/log.ts";
import { Phases } from "../../learner/phases.ts";
import { Rollout } from "../../learner/rollout/rollout.ts";
import type { Run } from "../../learner/run.ts";
import { startServer } from "../../learner/server/server.ts";
import { StatusBoard } from "../../learner/server/status.ts";
import { openStore } from "../../learner/store/store.ts";
import type { NewSample } from "../../learner/store/types.ts";
import { writeRunCertificates } from "../../proto/certificates.ts";
import type { EngineSeconds } from "../../proto/engine-seconds.ts";
import { LIMITS } from "./backlog.ts";
import type { Found } from "./simulated-actors.ts";

const SIMULATED = fileURLToPath(new URL("./simulated-actors.ts", import.meta.url));
/** Every response: a plan and a program. */
const SOLUTION = "A plan.\n```python\nimport pandas as pd\ntrain = pd.read_csv('input/train.csv')\n```";

/** `update` evaluates and trains. */
export interface BenchEngine extends Pick<Engine, "generate"> {
  update(): Promise<void>;
}

export interface Setting {
  engine: BenchEngine;
  algorithm: Partial<Algorithm>;
  model?: Partial<TrainingRunSpec["model"]>;
  /** Slots of each actor. */
  slots: number;
  actors: number;
  /** Duration of programs, and its spread: simulated-actors.ts. */
  programs: { seconds: number; spread: number };
  iterations: number;
  /** Number of first iterations that are not counted, because they only bring samples in flight. */
  uncounted: number;
  encode?: (text: string) => Int32Array;
  onStored?: (samples: readonly NewSample[]) => void;
}

export interface Counted {
  /** Duration of each counted iteration. */
  seconds: number[];
  engineSeconds: EngineSeconds[];
  meanLag: number[];
  /** When each program started, Unix milliseconds, by its execution. */
  starts: Record<string, number>;
}

/** @param onCounting called when the first counted iteration begins @param parent folder of the run's files */
export async function iterationsOf(
  setting: Setting,
  onCounting = () => {},
  parent: string = tmpdir(),
): Promise<Counted> {
  const directory = await mkdtemp(join(parent, "longrun-bench-"));
  const tls = await writeRunCertificates(join(directory, "tls"), { validSeconds: 3600 });
  const store = openStore(join(directory, "store.sqlite"), { leaseSeconds: 60, leaseGraceSeconds: 60, maxAttempts: 3 });
  await store.beginLineage(() => true);
  const status = new StatusBoard();
  const server = await startServer({
    ...{ store, status, address: "127.0.0.1:0", tlsDirectory: tls.learner, limitsOf: () => LIMITS },
    suspend: async () => ({}),
    log: createLog("learner", "warn"),
  });
  for (let index = 0; index < setting.actors; index++) await tls.actor(`simulated-${index}`);
  const { seconds, spread } = setting.programs;
  const actors = [0, setting.actors, seconds, setting.slots, spread].map(String);
  const child = fork(SIMULATED, [`127.0.0.1:${server.port}`, join(directory, "tls"), ...actors], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    env: { ...process.env, LOG_LEVEL: "warn" },
  });
  try {
    await once(child, "message");
    child.send("begin");
    child.send("count");
    const spec = specOf(setting);
    const { engine, encode = () => Int32Array.of(1), onStored = () => {} } = setting;
    const addSamples = (samples: readonly NewSample[]) => {
      onStored(samples);
      return server.write(() => store.addSamples(samples));
    };
    const rollout = new Rollout({
      ...{ engine, store, addSamples, spec, nextNumber: 1 },
      tasks: [
        {
          weight: 1,
          ...{ name: "diamonds", description: "Predict the price.", columns: [], files: [] },
          ...{ snippet: [], submissionFormat: [], packages: [] },
        },
      ],
      encode: (messages) => encode(messages.map(({ content }) => content).join("\n")),
      decode: () => SOLUTION,
    });
    const progress = { state: { iteration: 0, elapsedSeconds: 0 }, lines: [] };
    const never = new AbortController().signal;
    const phases = new Phases({ status, progress }, never, never);
    const run = {
      ...{ spec, store, server, rollout, phases, waiting: {} },
      grades: { gradeFinished: () => {} },
      iterations: { countLaunched: () => {} },
    } as unknown as Run;
    const counted: Counted = { seconds: [], engineSeconds: [], meanLag: [], starts: {} };
    for (let iteration = 1; iteration <= setting.iterations; iteration++) {
      if (iteration === setting.uncounted + 1) onCounting();
      phases.reset();
      const from = performance.now();
      const { batch } = await collect(run, iteration);
      phases.enter("train", batch.length);
      await engine.update();
      store.commitIteration({ iteration, sampleIds: batch.map(({ id }) => id), metrics: {} });
      progress.state.iteration = iteration;
      if (iteration <= setting.uncounted) continue;
      counted.seconds.push((performance.now() - from) / 1000);
      counted.engineSeconds.push(phases.engineSeconds);
      const lags = batch.map((sample) => iteration - 1 - sample.iteration);
      counted.meanLag.push(lags.reduce((sum, lag) => sum + lag, 0) / lags.length);
    }
    return { ...counted, starts: await startsOf(child) };
  } finally {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
    await server.close();
    store.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function startsOf(child: ChildProcess): Promise<Counted["starts"]> {
  const answer = once(child, "message");
  child.send("tell");
  const [{ starts }] = (await answer) as [Found];
  return starts;
}

function specOf({ algorithm, model }: Setting): TrainingRunSpec {
  return {
    seed: 0,
    algorithm: {
      ...{ batchSize: 128, oversampling: 1.25, collection: "CarryOver", maxStaleness: 2, stalenessPolicy: "Wait" },
      ...algorithm,
    },
    model: {
      ...{ generationBatchSize: 64, temperature: 1, topP: 1, maxPromptTokens: 1024, maxResponseTokens: 1024 },
      ...{ instrumenter: "Syntax", instrumenterMaxPromptTokens: 2048, instrumenterMaxResponseTokens: 2048 },
      ...model,
    },
    prompts: { style: "Short", improveProbability: 0, previousSolutions: 1, outputTailBytes: 1024 },
  } as unknown as TrainingRunSpec;
}
