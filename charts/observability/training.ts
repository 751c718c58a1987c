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
  description: "One TrainingRun: what it has learned, what programs come to, and where the time goes.",
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
            "What the learner does: it writes solutions (generating), waits for programs (executing), looks at what came out (evaluating), and learns from it (training).",
          queries: [["longrun_phase{@} == 1", "{{phase}}"]],
          as: "name",
        },
        {
          title: "Iteration",
          unit: "none",
          description: "Rounds of writing, running and learning that are finished.",
          queries: [
            ["longrun_iteration{@}", "finished"],
            ["longrun_stopping_iterations{@}", "of"],
          ],
          as: "number",
        },
        {
          title: "Best score",
          unit: "none",
          description: "Of the run so far, in the task's own metric; whether more or less is better is the task's.",
          queries: [["longrun_score_best{@}", "{{task}}"]],
          as: "number",
        },
        {
          title: "Valid",
          unit: "percentunit",
          description: "Share of the newest batch whose program ran and left a submission that could be graded.",
          queries: [["longrun_valid_ratio{@}", "valid"]],
          as: "number",
        },
        {
          title: "Since progress",
          unit: "s",
          description:
            "Seconds since anything came on: a phase, an execution, a step. Minutes are normal where programs or updates take that long.",
          queries: [["time() - longrun_progress_timestamp_seconds{@}", "ago"]],
          as: "number",
        },
        {
          title: "Checkpoint age",
          unit: "s",
          description: "What a crash now would cost: work since the newest checkpoint is done again.",
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
            "Mean of the valid programs of each batch, and the best of the run so far, in the task's own metric. This is what the run is for.",
          queries: [
            ["longrun_score_mean{@}", "mean, {{task}}"],
            ["longrun_score_best{@}", "best so far, {{task}}"],
          ],
        },
        {
          title: "Score by iteration",
          unit: "none",
          description: "The same over iterations instead of time: pauses and slow iterations do not show.",
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
            "What the update maximises: the score where there is one, about -10 for a program that failed, a little more for how far it came. It grows when fewer programs fail, before scores do.",
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
            "Mean of the valid programs of each task, from the worst (0) to the best score (100 %) of its grader's rewardRange: tasks with different metrics side by side.",
          queries: [["longrun_task_score_normalized_mean{@}", "{{task}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Valid programs by task",
          unit: "percentunit",
          description:
            "Share of each task's samples that could be graded. A task that stays at 0 is learned from failures alone.",
          queries: [["longrun_task_valid_ratio{@}", "{{task}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Samples by task",
          unit: "short",
          description: "What each batch held of each task: prompts draw tasks by tasks[].weight.",
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
            "Share of each batch that could be graded. It should rise and stay; a fall means that the policy has broken, or its environment has.",
          queries: [["longrun_valid_ratio{@}", "valid"]],
          min: 0,
          max: 1,
        },
        {
          title: "Outcomes",
          unit: "percentunit",
          description:
            "What programs came to, as shares of each batch. Lost ones are the infrastructure's fault, all others the program's own; notExecuted held no program.",
          queries: [["longrun_outcome_ratio{@}", "{{outcome}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Milestones",
          unit: "percentunit",
          description:
            "Share of the executed programs that reached each of the seven milestones: where programs that fail stop.",
          queries: [["longrun_marker_ratio{@}", "{{marker}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Kinds of model",
          unit: "percentunit",
          description:
            "Share of the executed programs by the kind of model that they fit. One that takes over is what a collapse looks like.",
          queries: [["longrun_family_ratio{@}", "{{family}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Responses cut",
          unit: "percentunit",
          description:
            "Share of each batch whose response was cut at model.maxResponseTokens. Such a response seldom holds a whole program: raise the limit, or see algorithm.truncated and algorithm.overlongPenalty.",
          queries: [["longrun_truncated_ratio{@}", "cut"]],
          min: 0,
          max: 1,
        },
        {
          title: "Refused and forged",
          unit: "short",
          description:
            "In the last hour: marker lines that were not genuine (a program tried to look further than it came), and instrumentations that were refused because they changed the program.",
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
            "Mean seconds of all programs that ended and of those that were trained on. Where launched lies above trained, slow programs are being lost. Weighted is the mean as the update counts it: above trained, slow programs are preferred.",
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
          description: "Half, nine in ten, and 99 in 100 programs of the last 15 minutes were faster than this.",
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
            "As how many equally weighted samples the batch counts, beside how many it has. Far below, a few slow programs decide the update.",
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
            "Share of the batch's whole weight that its heaviest sample has. Above one half, one program decides.",
          queries: [["longrun_duration_weight_max{@} / longrun_batch_samples{@}", "largest"]],
          min: 0,
        },
        {
          title: "Staleness",
          unit: "suffix:iterations",
          description:
            "Iterations between the writing of a solution and the learning from it. algorithm.maxStaleness bounds it.",
          queries: [
            ["longrun_lag_mean_iterations{@}", "mean"],
            ["longrun_lag_max_iterations{@}", "largest"],
          ],
          min: 0,
        },
        {
          title: "Queue, instrument, grade",
          unit: "s",
          description:
            "Nine in ten executions of the last 15 minutes waited, were instrumented and were graded faster than this. A long queue wants more actors.",
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
            "How far the policy has moved from where it began, nats a token. It grows slowly; a jump is a policy that runs away.",
          queries: [["longrun_policy_kl{@}", "KL"]],
        },
        {
          title: "Entropy",
          unit: "suffix:nats/token",
          description:
            "How undecided the policy is, nats a token. It falls as the policy learns; near 0 it writes the same program always and learns no more.",
          queries: [["longrun_policy_entropy{@}", "entropy"]],
          min: 0,
        },
        {
          title: "Clip fraction",
          unit: "percentunit",
          description:
            "Share of tokens whose change was cut short. Some percent are usual; above 30 % steps are too large.",
          queries: [["longrun_policy_clip_ratio{@}", "clipped"]],
          min: 0,
        },
        {
          title: "Gradient norm",
          unit: "none",
          description:
            "Length of the step that the batch asks for, before it is cut to algorithm.gradientClip. Spikes are odd batches; a steady rise is trouble.",
          queries: [
            ["longrun_policy_gradient_norm{@}", "policy"],
            ["longrun_value_gradient_norm{@}", "critic"],
          ],
          logarithmic: true,
        },
        {
          title: "Probability ratio",
          unit: "suffix:×",
          description: "By what factor the update changed the probability of a token: mean, near 1, and largest.",
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
            "Share of the rewards' differences that the critic foresees. At 0 or below it does not help. Only with algorithm.baseline: Critic.",
          queries: [["longrun_value_explained_variance{@}", "explained"]],
          max: 1,
        },
        {
          title: "Learning rate",
          unit: "sci",
          description: "Of the newest update, as algorithm.learningRateSchedule has it.",
          queries: [
            ["longrun_learning_rate{@}", "policy"],
            ["longrun_critic_learning_rate{@}", "critic"],
          ],
          min: 0,
        },
        {
          title: "Skipped steps",
          unit: "short",
          description:
            "Updates that were not made because their gradient was not a finite number. Any is one too many.",
          queries: [["longrun_skipped_steps_total{@}", "skipped"]],
          min: 0,
        },
        {
          title: "Sampling and training",
          unit: "none",
          description:
            "How far the ratio of both probabilities of a token is from 1 at most, though the same weights computed both. Rounding: 0.0001 on a CPU, 0.2 on a GPU. Above 0.01 on a CPU, 1 on a GPU the learner warns; above ten times that it ends.",
          queries: [["longrun_importance_max_deviation{@}", "largest"]],
          logarithmic: true,
        },
        {
          title: "Importance weights",
          unit: "percentunit",
          description:
            "Share of tokens, written by an earlier policy, whose correction was cut by algorithm.importanceCap. High means that the run learns from what is too old.",
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
          description: "Of the newest iteration: tokens written while writing, and trained on while training.",
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
            "Where the newest iteration's time went. Most of it in execute: the learner waits for programs, and What the engine does says why; most in generate or train: a faster learner would help.",
          queries: [["longrun_iteration_phase_seconds{@}", "{{phase}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "What the engine does",
          unit: "percentunit",
          description:
            "Shares of the newest iteration: generating and updating are work. idleActors: executions wait for an actor, add some. idlePrograms: raise algorithm.oversampling. idleStaleness: raise algorithm.maxStaleness, or make programs faster. idleOther: checkpoints, grading and the rest.",
          queries: [[`${ENGINE} / on () group_left () sum(${ENGINE})`, "{{use}}"]],
          stacked: true,
          min: 0,
          max: 1,
        },
        {
          title: "Busy share",
          unit: "percentunit",
          description:
            "Share of the actors' slots that execute a program, now and over the newest iteration; and of that iteration in which the learner's engine generated or updated.",
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
          description: "Programs that wait for a slot and that run, and the slots that there are.",
          queries: [
            ["longrun_executions{@}", "{{state}}"],
            ["longrun_slots{@}", "slots"],
          ],
          min: 0,
        },
        {
          title: "Actors",
          unit: "short",
          description: "Actors as the learner sees them. Away: it does not hear them, and they hold programs.",
          queries: [["longrun_actors{@}", "{{state}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Lost and retried",
          unit: "short",
          description:
            "In the last hour: executions that were tried again after their actor was lost, and that were given up. Neither is a program's fault.",
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
          description: "Share of the run's volume that is in use. Full, the run stops.",
          queries: [["1 - longrun_volume_free_bytes{@} / longrun_volume_size_bytes{@}", "used"]],
          min: 0,
          max: 1,
        },
        {
          title: "Checkpoint",
          unit: "bytes",
          description: "Size of the newest checkpoint; learner.checkpoint.keepLast of them are kept.",
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
          description:
            "In the last hour, on all actors. A sandbox that broke is started anew; its execution is tried again.",
          queries: [["sum(increase(longrun_actor_sandbox_failures_total{@}[1h]))", "broke"]],
          min: 0,
        },
        {
          title: "Certificates",
          unit: "s",
          description:
            "Seconds that the oldest certificate in use is still good for, and the oldest authority. Certificates are renewed with ten days to go.",
          queries: [
            ["min by (certificate) (longrun_certificate_expiration_timestamp_seconds{@}) - time()", "{{certificate}}"],
          ],
          min: 0,
        },
      ],
    },
  ],
};
