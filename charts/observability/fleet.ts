/** The dashboard of all runs: their demand and their waits. The controller serves these metrics. */
import type { Dashboard } from "./grafana.ts";

/** Returns a metric of the controller that leads, or that led until now. */
const each = (metric: string, ...labels: string[]) =>
  `max by (${["namespace", "run", ...labels].join(", ")}) (${metric})`;

export const FLEET: Dashboard = {
  uid: "longrun-fleet",
  title: "longrun / Fleet",
  description: "All TrainingRuns: phase, demand, actors, and the reasons why they wait.",
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
            "Pending: the run has not started. WarmingUp: the policy learns from given answers. Evaluating: the policy is evaluated. Suspended: stopped by spec.suspend; resumes from its checkpoint.",
          queries: [[`sum by (phase) (${each("longrun_run_phase{@}", "phase")})`, "{{phase}}"]],
          as: "number",
          width: 24,
        },
        {
          title: "Every run",
          unit: "none",
          description:
            "Demand: executions that wait or run; it sets the number of actors. Waiting: actors that do not run yet. Reason: the blocker that needs a person; empty if there is none.",
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
          description: "Executions of all runs that wait for an actor or run on one.",
          queries: [[`sum by (state) (${each("longrun_run_executions{@}", "state")})`, "{{state}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Actors",
          unit: "short",
          description: "Desired and existing actors. Idle actors run and have no execution.",
          queries: [[`sum by (state) (${each("longrun_run_actors{@}", "state")})`, "{{state}}"]],
          min: 0,
        },
        {
          title: "Actors that wait, and why",
          unit: "short",
          description:
            "Pods of actors that do not run yet. Scaling: just created. Other reasons: see the run's condition ActorsScaled.",
          queries: [
            [`sum by (run, reason) (${each("longrun_run_actors_waiting{@}", "reason")})`, "{{run}}: {{reason}}"],
          ],
          stacked: true,
          min: 0,
        },
        {
          title: "Runs that are blocked, and why",
          unit: "short",
          description: "Runs that wait for a person; kubectl describe shows the remedy.",
          queries: [[`sum by (reason) (${each("longrun_run_blocked{@}", "reason")})`, "{{reason}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Changes of scale",
          unit: "short",
          description: "Changes in the last hour, by direction. If both alternate, raise actors.scaleDownSeconds.",
          queries: [["sum by (direction) (increase(longrun_run_scalings_total{@}[1h]))", "{{direction}}"]],
          min: 0,
        },
        {
          title: "GPUs",
          unit: "short",
          description: "GPUs that the pods of runs request, by component.",
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
          description: "Programs of all runs that ended.",
          queries: [
            ['sum(rate(longrun_run_execution_events_total{@, event="completed"}[$__rate_interval]))', "completed"],
          ],
          min: 0,
        },
        {
          title: "Lost and retried",
          unit: "short",
          description:
            "Executions of the last hour that were retried after their actor was lost, or given up. Look at nodes and evictions.",
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
          description: "Share of each run's iterations that are finished.",
          queries: [[`${each("longrun_run_iteration{@}")} / ${each("longrun_run_stopping_iterations{@}")}`, "{{run}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Learners that answer",
          unit: "short",
          description: "1: the run's learner answers. 0: it should answer and does not.",
          queries: [[each("longrun_run_learner_available{@}"), "{{run}}"]],
          min: 0,
          max: 1,
        },
        {
          title: "Failures of learners",
          unit: "short",
          description:
            "Failures since the last finished iteration. Above spec.failurePolicy.retries the run is Failed; status.failures has the cause.",
          queries: [[each("longrun_run_learner_failures{@}"), "{{run}}"]],
          min: 0,
        },
        {
          title: "Certificates",
          unit: "s",
          description: "Seconds until a run's first certificate expires. Certificates are renewed ten days before.",
          queries: [[`${each("longrun_run_certificate_expiration_timestamp_seconds{@}")} - time()`, "{{run}}"]],
          min: 0,
        },
      ],
    },
  ],
};
