/** The controller itself. The names are those of controller-runtime and client-go, which people know. */
import type { Dashboard } from "./grafana.ts";

const QUEUE = '{name="trainingrun"}';
const CONTROLLER = '{controller="trainingrun"}';
/** Returns a process metric, restricted to controllers. */
const process = (metric: string) => `${metric} and on (job, instance) workqueue_depth${QUEUE}`;
const quantile = (q: number, metric: string, selector: string) =>
  `histogram_quantile(${q}, sum by (le) (rate(${metric}_bucket${selector}[$__rate_interval])))`;

export const OPERATOR: Dashboard = {
  uid: "longrun-operator",
  title: "longrun / Operator",
  description: "The controller: whether it leads, keeps up, and gets on with the API server.",
  from: "now-3h",
  variables: [],
  rows: [
    {
      title: "Now",
      panels: [
        {
          title: "Leader",
          unit: "none",
          description:
            "Which controller leads: exactly one does. Without one nothing is reconciled; runs that go on do so.",
          queries: [['leader_election_master_status{name="longrun-controller"} == 1', "{{instance}}"]],
          as: "name",
          width: 6,
        },
        {
          title: "Replicas",
          unit: "short",
          description: "Controllers that answer; one leads, the others wait to.",
          queries: [['count(leader_election_master_status{name="longrun-controller"})', "replicas"]],
          as: "number",
          width: 6,
        },
        {
          title: "Failed reconciles",
          unit: "percentunit",
          description:
            "Share of the last 15 minutes' reconciles. Conflicts that are tried again are some; a lasting share is a fault.",
          queries: [
            [
              `sum(rate(controller_runtime_reconcile_errors_total${CONTROLLER}[15m])) / sum(rate(controller_runtime_reconcile_total${CONTROLLER}[15m]))`,
              "failed",
            ],
          ],
          as: "number",
          width: 6,
        },
        {
          title: "Waiting",
          unit: "short",
          description: "Runs that wait for a worker.",
          queries: [[`sum(workqueue_depth${QUEUE})`, "runs"]],
          as: "number",
          width: 6,
        },
      ],
    },
    {
      title: "Reconciles",
      panels: [
        {
          title: "Reconciles a second",
          unit: "ops",
          description:
            "Looks at a run, by what came of them: requeue_after is to look again later, error to try again.",
          queries: [
            [`sum by (result) (rate(controller_runtime_reconcile_total${CONTROLLER}[$__rate_interval]))`, "{{result}}"],
          ],
          stacked: true,
          min: 0,
        },
        {
          title: "Duration of a reconcile",
          unit: "s",
          description:
            "Half, and 99 in 100, are faster than this. No reconcile waits for a learner: seconds are the API server's.",
          queries: [
            [quantile(0.5, "controller_runtime_reconcile_time_seconds", CONTROLLER), "50 %"],
            [quantile(0.99, "controller_runtime_reconcile_time_seconds", CONTROLLER), "99 %"],
          ],
          min: 0,
        },
        {
          title: "Workers",
          unit: "short",
          description: "That have a run now, of --workers.",
          queries: [[`sum(controller_runtime_active_workers${CONTROLLER})`, "busy"]],
          min: 0,
        },
        {
          title: "Longest reconcile",
          unit: "s",
          description:
            "Seconds that the run that is looked at longest has taken until now. Over 300 s the process is restarted.",
          queries: [[`max(workqueue_longest_running_processor_seconds${QUEUE})`, "longest"]],
          min: 0,
        },
      ],
    },
    {
      title: "Queue",
      panels: [
        {
          title: "Depth",
          unit: "short",
          description: "Runs that wait for a worker. Growing: it does not keep up; raise --workers or --qps.",
          queries: [[`sum by (instance) (workqueue_depth${QUEUE})`, "{{instance}}"]],
          min: 0,
        },
        {
          title: "Added and retried a second",
          unit: "ops",
          description: "Changes that called for a look, and looks after a failure.",
          queries: [
            [`sum(rate(workqueue_adds_total${QUEUE}[$__rate_interval]))`, "added"],
            [`sum(rate(workqueue_retries_total${QUEUE}[$__rate_interval]))`, "retried"],
          ],
          min: 0,
        },
        {
          title: "Wait in the queue",
          unit: "s",
          description: "99 in 100 waited less, from a change to a worker that looks at it; and the work itself.",
          queries: [
            [quantile(0.99, "workqueue_queue_duration_seconds", QUEUE), "wait"],
            [quantile(0.99, "workqueue_work_duration_seconds", QUEUE), "work"],
          ],
          min: 0,
        },
      ],
    },
    {
      title: "API server",
      panels: [
        {
          title: "Requests a second",
          unit: "reqps",
          description: "By method. In a quiet cluster there are watches and the lease's renewals alone.",
          queries: [["sum by (method) (rate(rest_client_requests_total[$__rate_interval]))", "{{method}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Answers that are no success",
          unit: "reqps",
          description:
            "A second, by status. 409 is a conflict that is tried again, 429 too many requests, 403 a right that is missing, <error> no answer.",
          queries: [['sum by (code) (rate(rest_client_requests_total{code!~"2.."}[$__rate_interval]))', "{{code}}"]],
          min: 0,
        },
        {
          title: "Duration of a request",
          unit: "s",
          description: "99 in 100 are faster, by method; of a watch, to its start.",
          queries: [
            [
              "histogram_quantile(0.99, sum by (le, verb) (rate(rest_client_request_duration_seconds_bucket[$__rate_interval])))",
              "{{verb}}",
            ],
          ],
          min: 0,
        },
        {
          title: "Watches that failed, in an hour",
          unit: "short",
          description:
            "Lists and watches that broke and were begun again, and handlers that failed. Some are usual when an API server restarts.",
          queries: [["sum by (kind) (increase(longrun_reflector_faults_total[1h]))", "{{kind}}"]],
          min: 0,
        },
      ],
    },
    {
      title: "Process",
      panels: [
        {
          title: "Memory",
          unit: "bytes",
          description: "Resident memory. It grows with the number of runs and actors, some KB each.",
          queries: [[process("process_resident_memory_bytes"), "{{instance}}"]],
          min: 0,
        },
        {
          title: "CPU",
          unit: "suffix:cores",
          description: "Processor cores in use by the process.",
          queries: [
            [
              `(${"rate(process_cpu_seconds_total[$__rate_interval])"}) and on (job, instance) workqueue_depth${QUEUE}`,
              "{{instance}}",
            ],
          ],
          min: 0,
        },
        {
          title: "Event loop lag",
          unit: "s",
          description:
            "99 in 100 turns of the process are late by less. Tenths of a second mean that it computes too much at once.",
          queries: [[process("nodejs_eventloop_lag_p99_seconds"), "{{instance}}"]],
          min: 0,
        },
      ],
    },
  ],
};
