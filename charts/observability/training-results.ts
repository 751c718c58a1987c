/** The rows of the training dashboard about results: the run's activity, scores, tasks and programs. */
import type { Row } from "./grafana.ts";

export const RESULTS: readonly Row[] = [
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
        description: "Best score of the run, in the task's metric. The task defines whether higher or lower is better.",
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
        description: "Mean score of the valid programs of each batch, and best score of the run, in the task's metric.",
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
        title: "Markers",
        unit: "percentunit",
        description: "Share of the executed programs that printed each of the seven progress markers.",
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
        title: "Debugging",
        unit: "short",
        description:
          "Samples of debug prompts trained on, by what became of the failed program. Empty without debug prompts.",
        queries: [["longrun_debugging_total{@}", "{{debugging}}"]],
        min: 0,
      },
      {
        title: "Failures",
        unit: "short",
        description: "Samples trained on without a valid submission, by the last step that they reached.",
        queries: [["longrun_failures_total{@}", "{{step}}"]],
        min: 0,
      },
      {
        title: "Prompts",
        unit: "short",
        description:
          "Samples trained on, by kind: from scratch, to improve an earlier solution, or to debug a failed one.",
        queries: [["longrun_prompts_total{@}", "{{kind}}"]],
        min: 0,
      },
    ],
  },
];
