/** All runs of the cluster: their demand and their waits. The controller serves these metrics, from the learners it knows. */
import type { Dashboard } from "./grafana.ts";

/** Metric of the controller that leads, or that led until now. */
const each = (metric: string, ...labels: string[]) =>
  `max by (${["namespace", "run", ...labels].join(", ")}) (${metric})`;

export const FLEET: Dashboard = {
  uid: "longrun-fleet",
  title: "longrun / Fleet",
  description: "All TrainingRuns: phase, what they need, what they have, and what they wait for.",
  from: "now-6h",
  variables: [
    { name: "namespace", label: "Namespace", query: "label_values(longrun_run_phase, namespace)", several: true },
    { name: "run", label: "Run", query: "label_values(longrun_run_phase{@}, run)", several: true },
  ],
  rows: [
    {
      title: "Runs",
      panels: [
        {
          title: "Runs by phase",
          unit: "short",
          description:
            "Pending: not begun yet. Evaluating: the policy is evaluated, before or after training. Suspended: stopped by spec.suspend, goes on where it was.",
          queries: [[`sum by (phase) (${each("longrun_run_phase{@}", "phase")})`, "{{phase}}"]],
          as: "number",
          width: 24,
        },
        {
          title: "Every run",
          unit: "none",
          description:
            "Demand is executions that wait or run; actors are made to match it. Waiting counts actors that are not running yet. Reason: what somebody has to do something about, empty if nothing.",
          queries: [
            [`${each("longrun_run_phase{@}", "phase")} == 1`, ""],
            [each("longrun_run_iteration{@}"), "iteration"],
            [each("longrun_run_stopping_iterations{@}"), "of"],
            [`sum by (namespace, run) (${each("longrun_run_executions{@}", "state")})`, "demand"],
            [each('longrun_run_actors{@, state="desired"}'), "desired"],
            [each('longrun_run_actors{@, state="running"}'), "running"],
            [each('longrun_run_actors{@, state="idle"}'), "idle"],
            [each('longrun_run_actors{@, state="starting"}'), "waiting"],
            [each("longrun_run_blocked{@}", "reason"), ""],
          ],
          as: "table",
        },
      ],
    },
    {
      title: "Actors",
      panels: [
        {
          title: "Demand",
          unit: "short",
          description: "Executions that wait for an actor and that run on one, of all runs.",
          queries: [[`sum by (state) (${each("longrun_run_executions{@}", "state")})`, "{{state}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Actors",
          unit: "short",
          description: "What the demand asks for, and what there is. Idle ones are running too and have nothing to do.",
          queries: [[`sum by (state) (${each("longrun_run_actors{@}", "state")})`, "{{state}}"]],
          min: 0,
        },
        {
          title: "Actors that wait, and why",
          unit: "short",
          description:
            "Pods of actors that do not run yet. Scaling: just made. Unschedulable, QuotaExceeded, ImagePullFailed and the like: see the run's condition ActorsScaled.",
          queries: [
            [`sum by (run, reason) (${each("longrun_run_actors_waiting{@}", "reason")})`, "{{run}}: {{reason}}"],
          ],
          stacked: true,
          min: 0,
        },
        {
          title: "Runs that are blocked, and why",
          unit: "short",
          description: "Runs that do not go on until somebody does something; kubectl describe says what.",
          queries: [[`sum by (reason) (${each("longrun_run_blocked{@}", "reason")})`, "{{reason}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Changes of scale",
          unit: "short",
          description: "In the last hour, by direction. Up and down all the time: raise actors.scaleDownSeconds.",
          queries: [["sum by (direction) (increase(longrun_run_scalings_total{@}[1h]))", "{{direction}}"]],
          min: 0,
        },
        {
          title: "GPUs",
          unit: "short",
          description: "That the pods of runs ask for, by component.",
          queries: [[`sum by (component) (${each("longrun_run_gpus{@}", "component")})`, "{{component}}"]],
          stacked: true,
          min: 0,
        },
      ],
    },
    {
      title: "Work",
      panels: [
        {
          title: "Executions a second",
          unit: "ops",
          description: "Programs that ended, of all runs.",
          queries: [
            ['sum(rate(longrun_run_execution_events_total{@, event="completed"}[$__rate_interval]))', "completed"],
          ],
          min: 0,
        },
        {
          title: "Lost and retried",
          unit: "short",
          description:
            "In the last hour, by run: executions tried again after their actor was lost, and given up. Neither is a program's fault: look at nodes and evictions.",
          queries: [
            [
              'sum by (run, event) (increase(longrun_run_execution_events_total{@, event=~"lost|retried|disrupted"}[1h]))',
              "{{run}}: {{event}}",
            ],
          ],
          min: 0,
        },
        {
          title: "Iterations",
          unit: "percentunit",
          description: "How far each run is.",
          queries: [[`${each("longrun_run_iteration{@}")} / ${each("longrun_run_stopping_iterations{@}")}`, "{{run}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Learners that answer",
          unit: "short",
          description: "1 where the run's learner answers, 0 where it should and does not.",
          queries: [[each("longrun_run_learner_available{@}"), "{{run}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Failures of learners",
          unit: "short",
          description:
            "Since the last finished iteration of each run. Above spec.failurePolicy.retries the run is Failed; status.failures says what it was.",
          queries: [[each("longrun_run_learner_failures{@}"), "{{run}}"]],
          min: 0,
        },
        {
          title: "Certificates",
          unit: "s",
          description: "Seconds until the first certificate of a run expires. They are renewed with ten days to go.",
          queries: [[`${each("longrun_run_certificate_expiration_timestamp_seconds{@}")} - time()`, "{{run}}"]],
          min: 0,
        },
      ],
    },
  ],
};
