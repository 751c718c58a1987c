import { collect } from "./collect.ts";
import { evaluatePolicy, isEvaluationDue } from "./evaluation/evaluate.ts";
import { durationClock } from "./rl/durations.ts";
import { type TrainingSample, update } from "./rl/update.ts";
import type { Run } from "./run.ts";
import { reasonToStop } from "./stopping.ts";
import type { Sample } from "./store/types.ts";
import type { Task } from "./tasks/task.ts";
import { warmUp } from "./warm-start.ts";

/**
 * Algorithm 1 of the paper: policy gradient with duration-aware updates and environment instrumentation.
 *
 * `run` holds the input: the policy pi (`engine`), the learning rates, batch size B, sampling multiplier m and number
 * of iterations N (`spec`), the execution environment P (`server`, to which actors connect), the task descriptions D
 * and the previous solutions D_prev (`rollout`, `store`).
 *
 * @returns why training ended, one sentence
 * @throws the reason of the signal that stopped the run; everything that was finished is then in the store
 */
export async function train(run: Run): Promise<string> {
  const { engine, generators, store, spec, tasks, progress, phases, iterations, recorded, deviationLimits } = run;
  await generators?.publish(progress.state.iteration);
  if (spec.evaluation.before) await evaluatePolicy(run, "before");
  if (spec.warmStart) {
    await warmUp(run);
    await generators?.publish(progress.state.iteration, { anew: true });
    // "before" is the model as it was given; this is what reinforcement learning begins with
    if (spec.evaluation.before && progress.state.iteration === 0) await evaluatePolicy(run, "during");
  }

  // for iteration = 1 to N
  let reason = reasonToStop(progress.lines, spec.stopping);
  while (reason === undefined) {
    if (isEvaluationDue(run)) await evaluatePolicy(run, "during");
    const iteration = iterations.begin();

    // Sample m B prompts s ~ D u D_prev; sample a solution a ~ pi(.|s) for each; instrument and execute it;
    // wait until B executions complete: each takes dt and earns a reward R(s, a)
    const collected = recorded?.batch(iteration) ?? (await collect(run, iteration));
    const { batch, abandonedSeconds } = collected;

    // The duration-weighted policy gradient, and theta <- theta - gamma grad J(theta)
    const origin = recorded ? undefined : store.originOf({ lineage: store.lineage, iteration: iteration - 1 });
    const wroteIt = (sample: Sample) =>
      sample.iteration === iteration - 1 && (origin === undefined || store.originOf(sample) === origin);
    const samples = batch.map((sample) => trainingSample(tasks.named(sample.task), sample, wroteIt(sample)));
    const updated = await update(engine, samples, spec.algorithm, {
      seed: spec.seed,
      iteration,
      iterations: spec.stopping.iterations,
      temperature: spec.model.temperature,
      maxResponseTokens: spec.model.maxResponseTokens,
      abandonedSeconds,
      durationClock: durationClock(spec),
      deviationLimits: recorded ? undefined : deviationLimits,
      onProgress: (phase, done, total) => phases.enter(phase, total, done),
    });

    // D_prev <- self-improve prompt given a and s'; and, which the paper lacks, failed programs to mend
    if (!recorded) {
      for (const { id, grade } of batch) if (grade?.valid) store.addPreviousSolution({ id, iteration });
      const failed = batch.filter(({ grade, result }) => result && !grade?.valid);
      store.addFailedSolutions(
        failed.map(({ id }) => id),
        iteration,
      );
    }

    await iterations.finish({ ...collected, iteration, updated });
    reason = reasonToStop(progress.lines, spec.stopping);
    if (reason === undefined || spec.evaluation.after) await generators?.publish(iteration);
  }

  if (spec.evaluation.after) await evaluatePolicy(run, "after");
  return reason;
}

function trainingSample({ grader }: Task, sample: Sample, onPolicy: boolean): TrainingSample {
  const { result, grade } = sample;
  if (grade === undefined) throw new Error(`sample ${sample.id} is in a batch without a grade`);
  const higherIsBetter = grader.direction === "Higher";
  return {
    prompt: sample.promptTokens,
    response: sample.responseTokens,
    truncated: sample.truncated,
    task: sample.task,
    group: sample.group ?? sample.id,
    behaviourLogProbs: sample.behaviourLogProbs,
    reward: grade.reward,
    goodness: grade.valid && grade.score !== undefined ? (higherIsBetter ? grade.score : -grade.score) : undefined,
    onPolicy,
    outcome: result?.outcome,
    durationSeconds: result?.durationSeconds,
    cpuSeconds: result?.cpuSeconds,
  };
}
