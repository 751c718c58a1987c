/** The dashboard of the controller itself. Its metrics have the names of controller-runtime and client-go. */
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
  description: "The controller: leadership, queue, and requests to the API server.",
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
            "The leading controller. Without a leader nothing is reconciled; running learners and actors go on.",
          queries: [['leader_election_master_status{name="longrun-controller"} == 1', "{{instance}}"]],
          as: "name",
          width: 6,
        },
        {
          title: "Replicas",
          unit: "short",
          description: "Controllers that answer: one leads, the others stand by.",
          queries: [['count(leader_election_master_status{name="longrun-controller"})', "replicas"]],
          as: "number",
          width: 6,
        },
        {
          title: "Failed reconciles",
          unit: "percentunit",
          description:
            "Share of the last 15 minutes' reconciles. Conflicts are retried and count too; a lasting share is a fault.",
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
          description: "Reconciles by result. requeue_after: the run is reconciled again later. error: it is retried.",
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
            "Median and 99th percentile. No reconcile waits for a learner; a slow one waits for the API server.",
          queries: [
            [quantile(0.5, "controller_runtime_reconcile_time_seconds", CONTROLLER), "50 %"],
            [quantile(0.99, "controller_runtime_reconcile_time_seconds", CONTROLLER), "99 %"],
          ],
          min: 0,
        },
        {
          title: "Workers",
          unit: "short",
          description: "Busy workers of --workers.",
          queries: [[`sum(controller_runtime_active_workers${CONTROLLER})`, "busy"]],
          min: 0,
        },
        {
          title: "Longest reconcile",
          unit: "s",
          description: "Seconds of the longest reconcile under way. Above 300 s the kubelet restarts the process.",
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
          description: "Runs that wait for a worker. If the number grows, raise --workers or --qps.",
          queries: [[`sum by (instance) (workqueue_depth${QUEUE})`, "{{instance}}"]],
          min: 0,
        },
        {
          title: "Added and retried a second",
          unit: "ops",
          description: "Reconciles that a change requested, and retries after a failure.",
          queries: [
            [`sum(rate(workqueue_adds_total${QUEUE}[$__rate_interval]))`, "added"],
            [`sum(rate(workqueue_retries_total${QUEUE}[$__rate_interval]))`, "retried"],
          ],
          min: 0,
        },
        {
          title: "Wait in the queue",
          unit: "s",
          description: "99th percentile of the time from a change to its reconcile, and of the reconcile.",
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
          description: "Requests by method. A quiet cluster shows only watches and renewals of the Lease.",
          queries: [["sum by (method) (rate(rest_client_requests_total[$__rate_interval]))", "{{method}}"]],
          stacked: true,
          min: 0,
        },
        {
          title: "Answers that are no success",
          unit: "reqps",
          description:
            "Answers per second, by status. 409: a conflict, which is retried. 429: too many requests. 403: a missing right. <error>: no answer.",
          queries: [['sum by (code) (rate(rest_client_requests_total{code!~"2.."}[$__rate_interval]))', "{{code}}"]],
          min: 0,
        },
        {
          title: "Duration of a request",
          unit: "s",
          description: "99th percentile by method; for a watch, the time to its start.",
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
            "Lists and watches that broke and restarted, and handlers that failed. A restart of the API server causes some.",
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
          description: "Resident memory. It grows by some KB for each run and actor.",
          queries: [[process("process_resident_memory_bytes"), "{{instance}}"]],
          min: 0,
        },
        {
          title: "CPU",
          unit: "suffix:cores",
          description: "CPU cores that the process uses.",
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
          description: "99th percentile of the event loop's delay. Above 0.1 s the process computes too much at once.",
          queries: [[process("nodejs_eventloop_lag_p99_seconds"), "{{instance}}"]],
          min: 0,
        },
      ],
    },
  ],
};
