/** The rows of the training dashboard about the process: durations, the policy's updates, speed and the machine. */
import type { Row } from "./grafana.ts";

const BUSY = "sum(rate(longrun_actor_busy_slot_seconds_total{@}[$__rate_interval]))";
const SLOT = "sum(rate(longrun_actor_slot_seconds_total{@}[$__rate_interval]))";
const ENGINE = "longrun_iteration_engine_seconds{@}";
const quantile = (q: number, stage: string) =>
  `histogram_quantile(${q}, sum by (le) (rate(longrun_stage_duration_seconds_bucket{@, stage="${stage}"}[15m])))`;

export const PROCESS: readonly Row[] = [
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
          "Estimate of the KL divergence from the starting policy, nats per token; near 0 it can be negative. Slow growth is normal; a jump means that the policy diverges.",
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
];
