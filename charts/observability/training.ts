/** One run: is it learning, and is it going on? */
import type { Dashboard } from "./grafana.ts";

const BUSY = "sum(rate(longrun_actor_busy_slot_seconds_total{@}[$__rate_interval]))";
const SLOT = "sum(rate(longrun_actor_slot_seconds_total{@}[$__rate_interval]))";
const ENGINE = "longrun_iteration_engine_seconds{@}";
const quantile = (q: number, stage: string) =>
  `histogram_quantile(${q}, sum by (le) (rate(longrun_stage_duration_seconds_bucket{@, stage="${stage}"}[15m])))`;

export const TRAINING: Dashboard = {
  uid: "longrun-training",
  title: "longrun / Training",
  description: "One TrainingRun: scores, outcomes of programs, and time.",
  from: "now-6h",
  variables: [
    { name: "namespace", label: "Namespace", query: "label_values(longrun_iteration, namespace)" },
    { name: "run", label: "Run", query: "label_values(longrun_iteration{@}, run)" },
  ],
  rows: [
    {
      title: "Now",
      panels: [
        {
          title: "Doing",
          unit: "none",
          description:
            "Activity of the learner: it writes solutions (generating), waits for programs (executing), computes log-probs and values (evaluating), or updates the policy (training).",
          queries: [["longrun_phase{@} == 1", "{{phase}}"]],
          as: "name",
        },
        {
          title: "Iteration",
          unit: "none",
          description: "Finished iterations.",
          queries: [
            ["longrun_iteration{@}", "finished"],
            ["longrun_stopping_iterations{@}", "of"],
          ],
          as: "number",
        },
        {
          title: "Best score",
          unit: "none",
          description:
            "Best score of the run, in the task's metric. The task defines whether higher or lower is better.",
          queries: [["longrun_score_best{@}", "{{task}}"]],
          as: "number",
        },
        {
          title: "Valid",
          unit: "percentunit",
          description: "Share of the newest batch with a valid submission.",
          queries: [["longrun_valid_ratio{@}", "valid"]],
          as: "number",
        },
        {
          title: "Since progress",
          unit: "s",
          description:
            "Seconds since the last progress: a phase, an execution or a step. Minutes are normal if programs or updates take minutes.",
          queries: [["time() - longrun_progress_timestamp_seconds{@}", "ago"]],
          as: "number",
        },
        {
          title: "Checkpoint age",
          unit: "s",
          description: "Age of the newest checkpoint. A crash repeats the work since then.",
          queries: [["time() - longrun_checkpoint_timestamp_seconds{@}", "old"]],
          as: "number",
        },
      ],
    },
    {
      title: "Score",
      panels: [
        {
          title: "Score by time",
          unit: "none",
          description:
            "Mean score of the valid programs of each batch, and best score of the run, in the task's metric.",
          queries: [
            ["longrun_score_mean{@}", "mean, {{task}}"],
            ["longrun_score_best{@}", "best so far, {{task}}"],
          ],
        },
        {
          title: "Score by iteration",
          unit: "none",
          description: "The same scores by iteration.",
          queries: [
            ["longrun_iteration{@}", "iteration"],
            ["longrun_score_mean{@}", "mean, {{task}}"],
            ["longrun_score_best{@}", "best so far, {{task}}"],
          ],
          as: "byFirst",
        },
        {
          title: "Reward",
          unit: "none",
          description:
            "Mean reward of the batch, which the update maximises: about -10 for a failed program, a little more for its markers, the score's reward for a valid one.",
          queries: [["longrun_reward_mean{@}", "mean"]],
        },
      ],
    },
    {
      title: "Tasks",
      panels: [
        {
          title: "Score by task",
          unit: "percentunit",
          description:
            "Mean score of each task's valid programs, from the worst (0 %) to the best score (100 %) of its grader's rewardRange.",
          queries: [["longrun_task_score_normalized_mean{@}", "{{task}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Valid programs by task",
          unit: "percentunit",
          description: "Share of each task's samples with a valid submission.",
          queries: [["longrun_task_valid_ratio{@}", "{{task}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Samples by task",
          unit: "short",
          description: "Samples of each task in a batch. Prompts draw tasks by tasks[].weight.",
          queries: [["longrun_task_samples{@}", "{{task}}"]],
          stacked: true,
        },
      ],
    },
    {
      title: "Programs",
      panels: [
        {
          title: "Valid programs",
          unit: "percentunit",
          description:
            "Share of each batch with a valid submission. A fall means that the policy or its environment is broken.",
          queries: [["longrun_valid_ratio{@}", "valid"]],
          min: 0,
          max: 1,
        },
        {
          title: "Outcomes",
          unit: "percentunit",
          description:
            "Outcomes as shares of each batch. lost: the infrastructure failed. notExecuted: the response held no program.",
          queries: [["longrun_outcome_ratio{@}", "{{outcome}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Milestones",
          unit: "percentunit",
          description: "Share of the executed programs that reached each of the seven milestones.",
          queries: [["longrun_marker_ratio{@}", "{{marker}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Kinds of model",
          unit: "percentunit",
          description:
            "Share of the executed programs by the kind of model that they fit. One dominant kind is a sign of collapse.",
          queries: [["longrun_family_ratio{@}", "{{family}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Responses cut",
          unit: "percentunit",
          description:
            "Share of each batch whose response was cut at model.maxResponseTokens. Raise the limit, or see algorithm.truncated and algorithm.overlongPenalty.",
          queries: [["longrun_truncated_ratio{@}", "cut"]],
          min: 0,
          max: 1,
        },
        {
          title: "Refused and forged",
          unit: "short",
          description:
            "In the last hour: forged marker lines, and instrumentations that were refused because they changed the program.",
          queries: [
            ["increase(longrun_forged_markers_total{@}[1h])", "forged markers"],
            ["increase(longrun_verification_failures_total{@}[1h])", "refused instrumentations"],
          ],
          min: 0,
        },
        {
          title: "Prompts",
          unit: "short",
          description: "Samples trained on, by kind: from scratch, or to improve an earlier solution.",
          queries: [["longrun_prompts_total{@}", "{{kind}}"]],
          min: 0,
        },
      ],
    },
    {
      title: "Durations",
      panels: [
        {
          title: "Duration: launched and trained",
          unit: "s",
          description:
            "Mean seconds of all ended programs (launched) and of the batch (trained). Launched above trained: slow programs are lost. Weighted: the mean by duration weight; above trained, the update prefers slow programs.",
          queries: [
            ["longrun_duration_launched_mean_seconds{@}", "launched"],
            ["longrun_duration_trained_mean_seconds{@}", "trained"],
            ["longrun_duration_weighted_mean_seconds{@}", "trained, weighted"],
          ],
          min: 0,
        },
        {
          title: "Duration of executions",
          unit: "s",
          description: "50th, 90th and 99th percentile of the last 15 minutes.",
          queries: [
            [quantile(0.5, "execute"), "50 %"],
            [quantile(0.9, "execute"), "90 %"],
            [quantile(0.99, "execute"), "99 %"],
          ],
          min: 0,
        },
        {
          title: "Effective sample size",
          unit: "suffix:samples",
          description:
            "Number of equally weighted samples with the same effect as the batch, and the batch's size. If it is far lower, a few slow programs decide the update.",
          queries: [
            ["longrun_effective_sample_size{@}", "effective"],
            ["longrun_batch_samples{@}", "samples"],
          ],
          min: 0,
        },
        {
          title: "Largest weight",
          unit: "percentunit",
          description:
            "Share of the batch's weight that its heaviest sample has. Above one half, one program decides the update.",
          queries: [["longrun_duration_weight_max{@} / longrun_batch_samples{@}", "largest"]],
          min: 0,
        },
        {
          title: "Staleness",
          unit: "suffix:iterations",
          description:
            "Iterations between the dispatch of a sample and its training. algorithm.maxStaleness is the bound.",
          queries: [
            ["longrun_lag_mean_iterations{@}", "mean"],
            ["longrun_lag_max_iterations{@}", "largest"],
          ],
          min: 0,
        },
        {
          title: "Queue, instrument, grade",
          unit: "s",
          description: "90th percentile of the last 15 minutes. If the queue is long, add actors.",
          queries: [
            [quantile(0.9, "queue"), "queue"],
            [quantile(0.9, "instrument"), "instrument"],
            [quantile(0.9, "grade"), "grade"],
          ],
          min: 0,
        },
      ],
    },
    {
      title: "Policy",
      panels: [
        {
          title: "KL to the reference",
          unit: "suffix:nats/token",
          description:
            "KL divergence from the starting policy, nats per token. Slow growth is normal; a jump means that the policy diverges.",
          queries: [["longrun_policy_kl{@}", "KL"]],
        },
        {
          title: "Entropy",
          unit: "suffix:nats/token",
          description:
            "Entropy of the policy, nats per token. It falls as the policy learns; near 0 the policy always writes the same program.",
          queries: [["longrun_policy_entropy{@}", "entropy"]],
          min: 0,
        },
        {
          title: "Clip fraction",
          unit: "percentunit",
          description:
            "Share of tokens whose ratio was clipped. Some percent are normal; above 30 % steps are too large.",
          queries: [["longrun_policy_clip_ratio{@}", "clipped"]],
          min: 0,
        },
        {
          title: "Gradient norm",
          unit: "none",
          description:
            "Norm of the gradient before algorithm.gradientClip. A spike is one unusual batch; a steady rise is a problem.",
          queries: [
            ["longrun_policy_gradient_norm{@}", "policy"],
            ["longrun_value_gradient_norm{@}", "critic"],
          ],
          logarithmic: true,
        },
        {
          title: "Probability ratio",
          unit: "suffix:×",
          description: "Ratio of a token's new and old probability: mean, which is near 1, and largest.",
          queries: [
            ["longrun_policy_ratio_mean{@}", "mean"],
            ["longrun_policy_ratio_max{@}", "largest"],
          ],
          logarithmic: true,
        },
        {
          title: "Critic",
          unit: "percentunit",
          description:
            "Explained variance of the critic. At 0 or below the critic does not help. Only with algorithm.baseline: Critic.",
          queries: [["longrun_value_explained_variance{@}", "explained"]],
          max: 1,
        },
        {
          title: "Learning rate",
          unit: "sci",
          description: "Learning rate of the newest update (algorithm.learningRateSchedule).",
          queries: [
            ["longrun_learning_rate{@}", "policy"],
            ["longrun_critic_learning_rate{@}", "critic"],
          ],
          min: 0,
        },
        {
          title: "Skipped steps",
          unit: "short",
          description: "Optimiser steps that were skipped because the gradient was not finite. There should be none.",
          queries: [["longrun_skipped_steps_total{@}", "skipped"]],
          min: 0,
        },
        {
          title: "Sampling and training",
          unit: "none",
          description:
            "Largest difference from 1 of the ratio between training's and generation's probability of a token, with the same weights. Rounding: 0.0001 on a CPU, 0.2 on a GPU. The learner warns above 0.01 on a CPU and 1 on a GPU, and ends above ten times that.",
          queries: [["longrun_importance_max_deviation{@}", "largest"]],
          logarithmic: true,
        },
        {
          title: "Importance weights",
          unit: "percentunit",
          description:
            "Share of stale tokens whose importance weight algorithm.importanceCap cut. If it is high, samples are too old.",
          queries: [["longrun_importance_capped_ratio{@}", "cut"]],
          min: 0,
        },
      ],
    },
    {
      title: "Speed",
      panels: [
        {
          title: "Tokens a second",
          unit: "suffix:tok/s",
          description: "Tokens per second of the newest iteration, generated and trained.",
          queries: [
            ["longrun_generation_tokens_per_second{@}", "generation"],
            ["longrun_training_tokens_per_second{@}", "training"],
          ],
          min: 0,
        },
        {
          title: "Phases of an iteration",
          unit: "s",
          description:
            "Seconds of the newest iteration by phase. execute: the learner waits for programs; the panel What the engine does shows why. generate, train: a faster learner would help.",
          queries: [["longrun_iteration_phase_seconds{@}", "{{phase}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "What the engine does",
          unit: "percentunit",
          description:
            "Shares of the newest iteration. generating, updating: work. idleActors: add actors. idlePrograms: raise algorithm.oversampling. idleStaleness: raise algorithm.maxStaleness, or make programs faster. idleOther: checkpoints, grading and the rest.",
          queries: [[`${ENGINE} / on () group_left () sum(${ENGINE})`, "{{use}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Busy share",
          unit: "percentunit",
          description:
            "Share of the actors' slots that execute a program, now and in the newest iteration, and share of that iteration in which the engine generated or updated.",
          queries: [
            [`${BUSY} / ${SLOT}`, "actors now"],
            ["longrun_actor_busy_ratio{@}", "actors, iteration"],
            [`sum(${ENGINE.replace("{@", '{@, use!~"idle.*"')}) / sum(${ENGINE})`, "engine, iteration"],
          ],
          min: 0,
          max: 1,
        },
        {
          title: "Executions",
          unit: "short",
          description: "Waiting and running programs, and slots.",
          queries: [
            ["longrun_executions{@}", "{{state}}"],
            ["longrun_slots{@}", "slots"],
          ],
          min: 0,
        },
        {
          title: "Actors",
          unit: "short",
          description: "Actors as the learner sees them. away: a silent actor that holds programs.",
          queries: [["longrun_actors{@}", "{{state}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Lost and retried",
          unit: "short",
          description: "Executions of the last hour that were retried after their actor was lost, or given up.",
          queries: [['increase(longrun_execution_events_total{@, event=~"lost|retried|disrupted"}[1h])', "{{event}}"]],
          min: 0,
        },
      ],
    },
    {
      title: "Machine",
      panels: [
        {
          title: "Memory",
          unit: "bytes",
          description:
            "Resident memory of the learner's process and of the largest supervisor of an actor; programs are not counted.",
          queries: [
            ["max(process_resident_memory_bytes{@} and on (instance) longrun_iteration{@})", "learner"],
            ["max(process_resident_memory_bytes{@} and on (instance) longrun_actor_connected{@})", "largest actor"],
          ],
          min: 0,
        },
        {
          title: "Disk",
          unit: "percentunit",
          description: "Used share of the run's volume. When it is full, the run waits for room.",
          queries: [["1 - longrun_volume_free_bytes{@} / longrun_volume_size_bytes{@}", "used"]],
          min: 0,
          max: 1,
        },
        {
          title: "Checkpoint",
          unit: "bytes",
          description: "Size of the newest checkpoint. The run keeps learner.checkpoint.keepLast of them.",
          queries: [["longrun_checkpoint_bytes{@}", "size"]],
          min: 0,
        },
        {
          title: "Time to write a checkpoint",
          unit: "s",
          description: "The run learns nothing meanwhile.",
          queries: [["longrun_checkpoint_seconds{@}", "seconds"]],
          min: 0,
        },
        {
          title: "Sandboxes that broke",
          unit: "short",
          description: "Broken sandboxes of the last hour. The actor restarts them and the execution runs again.",
          queries: [["sum(increase(longrun_actor_sandbox_failures_total{@}[1h]))", "broke"]],
          min: 0,
        },
        {
          title: "Certificates",
          unit: "s",
          description:
            "Seconds until the first certificate and the first authority in use expire. Certificates are renewed ten days before.",
          queries: [
            ["min by (certificate) (longrun_certificate_expiration_timestamp_seconds{@}) - time()", "{{certificate}}"],
          ],
          min: 0,
        },
      ],
    },
  ],
};
