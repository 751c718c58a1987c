/**
 * Has for each alert cases in which it fires and cases in which it does not: series that start at minute 0 with one value a minute, in
 * promtool's notation: `0+60x90` is 0, 60, … for 90 minutes more. The clock starts at Unix time 0.
 */

export interface AlertCase {
  alert: string;
  /** The situation. */
  when: string;
  /** Values by series. */
  series: Record<string, string>;
  /** The minute at which the alert is checked. */
  at: number;
  /** Undefined: it does not fire. */
  fires?: { labels: Record<string, string>; summary: string; description?: string };
}

const RUN = 'namespace="team", run="pizza"';
const labels = { namespace: "team", run: "pizza" };
const of = (metric: string, more = "") => `${metric}{${RUN}${more}}`;
/** Returns series of an engine's seconds per minute by use, in a learner with or without GPUs. */
const engine = (minute: Record<string, number>, gpus = 1) => ({
  ...Object.fromEntries(
    Object.entries(minute).map(([use, seconds]) => [
      of("longrun_learner_engine_seconds_total", `${POD}, use="${use}"`),
      `0+${seconds}x500`,
    ]),
  ),
  [of("longrun_run_gpus", ', component="learner", pod="a"')]: `${gpus}x500`,
  [of("longrun_run_gpus", ', component="actor", pod="a"')]: "4x500",
});
const POD = ', pod="pizza-learner-0"';
const pod = { ...labels, pod: "pizza-learner-0" };

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: "LongrunNoProgress",
    when: "no progress for 70 minutes",
    series: { [of("longrun_progress_timestamp_seconds", POD)]: "0x80" },
    at: 70,
    fires: { labels: pod, summary: "Run team/pizza has made no progress for 1h 10m 0s." },
  },
  {
    alert: "LongrunNoProgress",
    when: "it comes on once in 50 minutes",
    series: { [of("longrun_progress_timestamp_seconds", POD)]: "0x49 3000x49 6000x50" },
    at: 140,
  },
  {
    alert: "LongrunLearnerDown",
    when: "the learner does not answer for 20 minutes, whichever controller says so",
    series: {
      [of("longrun_run_learner_available", ', pod="a"')]: "0x10",
      [of("longrun_run_learner_available", ', pod="b"')]: "_x10 0x20",
    },
    at: 20,
    fires: { labels, summary: "The learner of run team/pizza does not answer." },
  },
  {
    alert: "LongrunLearnerDown",
    when: "it starts for ten minutes, then answers",
    series: { [of("longrun_run_learner_available")]: "0x10 1x30" },
    at: 30,
  },
  {
    alert: "LongrunLearnerFailing",
    when: "the third time without an iteration",
    series: { [of("longrun_run_learner_failures")]: "0x5 1x5 2x5 3x10" },
    at: 20,
    fires: { labels, summary: "The learner of run team/pizza has failed 3 times without finishing an iteration." },
  },
  {
    alert: "LongrunLearnerFailing",
    when: "it fails twice, then comes on",
    series: { [of("longrun_run_learner_failures")]: "0x5 1x5 2x5 0x10" },
    at: 20,
  },
  {
    alert: "LongrunActorsStuck",
    when: "one of four runs",
    series: {
      [of("longrun_run_actors", ', state="desired"')]: "4x30",
      [of("longrun_run_actors", ', state="running"')]: "1x30",
    },
    at: 20,
    fires: { labels, summary: "Run team/pizza lacks 3 of its actors." },
  },
  {
    alert: "LongrunActorsStuck",
    when: "they come within ten minutes, and more are asked for later",
    series: {
      [of("longrun_run_actors", ', state="desired"')]: "4x15 8x15",
      [of("longrun_run_actors", ', state="running"')]: "1x10 4x10 8x10",
    },
    at: 28,
  },
  {
    alert: "LongrunExecutionsLost",
    when: "twelve of 72 in an hour",
    series: {
      [of("longrun_execution_events_total", ', event="lost"')]: "0+0.2x100",
      [of("longrun_execution_events_total", ', event="completed"')]: "0+1x100",
    },
    at: 90,
    fires: { labels, summary: "Run team/pizza has lost 12 executions within an hour." },
  },
  {
    alert: "LongrunExecutionsLost",
    when: "six of a thousand in an hour",
    series: {
      [of("longrun_execution_events_total", ', event="lost"')]: "0+0.1x100",
      [of("longrun_execution_events_total", ', event="completed"')]: "0+17x100",
    },
    at: 90,
  },
  {
    alert: "LongrunMarkersForged",
    when: "thirty forged lines, 120 programs in an hour",
    series: {
      [of("longrun_forged_markers_total")]: "0+0.5x100",
      [of("longrun_samples_total", ', outcome="completed"')]: "0+1x100",
      [of("longrun_samples_total", ', outcome="failed"')]: "0+1x100",
    },
    at: 90,
    fires: {
      labels,
      summary: "Programs of run team/pizza forge progress markers.",
      description:
        "30 forged marker lines within an hour, more than one for ten programs: the policy may be learning to cheat.",
    },
  },
  {
    alert: "LongrunMarkersForged",
    when: "six forged lines",
    series: {
      [of("longrun_forged_markers_total")]: "0+0.1x100",
      [of("longrun_samples_total", ', outcome="completed"')]: "0+2x100",
    },
    at: 90,
  },
  {
    alert: "LongrunValidFractionCollapsed",
    when: "from 80 % to 20 %",
    series: { [of("longrun_valid_ratio", POD)]: "0.8x120 0.2x60" },
    at: 160,
    fires: { labels: pod, summary: "Only 20% of the programs of run team/pizza are valid." },
  },
  {
    alert: "LongrunValidFractionCollapsed",
    when: "one bad batch of ten minutes",
    series: { [of("longrun_valid_ratio", POD)]: "0.8x120 0.2x9 0.8x60" },
    at: 140,
  },
  {
    alert: "LongrunValidFractionCollapsed",
    when: "it was never above 20 %, as at the beginning of a run",
    series: { [of("longrun_valid_ratio", POD)]: "0.15x60 0.05x60" },
    at: 110,
  },
  {
    alert: "LongrunPolicyDiverged",
    when: "half a nat away",
    series: { [of("longrun_policy_kl", POD)]: "0.5x30" },
    at: 15,
    fires: {
      labels: pod,
      summary: "The policy of run team/pizza has diverged from its starting policy.",
      description: "Its KL divergence from that model is 0.50 nats a token; runs that went well ended below 0.12.",
    },
  },
  {
    alert: "LongrunPolicyDiverged",
    when: "where good runs end",
    series: { [of("longrun_policy_kl", POD)]: "0.11x30" },
    at: 15,
  },
  {
    alert: "LongrunEntropyCollapsed",
    when: "a fifth is left",
    series: { [of("longrun_policy_entropy", POD)]: "0.2x60 0.04x40" },
    at: 80,
    fires: {
      labels: pod,
      summary: "The policy of run team/pizza always writes nearly the same program.",
      description: "Its entropy, 0.040 nats a token, has fallen to a quarter within twelve hours.",
    },
  },
  {
    alert: "LongrunEntropyCollapsed",
    when: "half is left, as in runs that went well",
    series: { [of("longrun_policy_entropy", POD)]: "0.2x60 0.1x40" },
    at: 80,
  },
  {
    alert: "LongrunWeightsDominated",
    when: "one of 64 has the weight of 40",
    series: { [of("longrun_duration_weight_max", POD)]: "40x20", [of("longrun_batch_samples", POD)]: "64x20" },
    at: 10,
    fires: {
      labels: pod,
      summary: "One program decides the update of run team/pizza.",
      description: "It has 62.5% of the batch's weight, because it ran much longer than the others.",
    },
  },
  {
    alert: "LongrunWeightsDominated",
    when: "weights of up to 4",
    series: { [of("longrun_duration_weight_max", POD)]: "4x20", [of("longrun_batch_samples", POD)]: "64x20" },
    at: 10,
  },
  {
    alert: "LongrunWeightsDominated",
    when: "a batch so small that one always decides",
    series: { [of("longrun_duration_weight_max", POD)]: "3x20", [of("longrun_batch_samples", POD)]: "4x20" },
    at: 10,
  },
  {
    alert: "LongrunEngineIdle",
    when: "it waits for actors and programs two thirds of the time",
    series: engine({ generating: 15, updating: 5, idleActors: 30, idlePrograms: 10 }),
    at: 400,
    fires: { labels, summary: "The GPU of run team/pizza has idled 66.67% of six hours." },
  },
  {
    alert: "LongrunEngineIdle",
    when: "iterations of 50 minutes, each counted when it ends, and a learner that restarts",
    series: {
      [of("longrun_learner_engine_seconds_total", ', pod="a", use="generating"')]: "0x49 900x49 1800x49 2700x49",
      [of("longrun_learner_engine_seconds_total", ', pod="a", use="idleActors"')]: "0x49 2100x49 4200x49 6300x49",
      [of("longrun_learner_engine_seconds_total", ', pod="b", use="generating"')]:
        "_x199 0x49 900x49 1800x49 2700x49 3600x49",
      [of("longrun_learner_engine_seconds_total", ', pod="b", use="idleActors"')]:
        "_x199 0x49 2100x49 4200x49 6300x49 8400x49",
      [of("longrun_run_gpus", ', component="learner"')]: "1x500",
    },
    at: 420,
    fires: { labels, summary: "The GPU of run team/pizza has idled 70% of six hours." },
  },
  {
    alert: "LongrunEngineIdle",
    when: "it idles, and has no GPU that does so",
    series: engine({ generating: 15, updating: 5, idleActors: 40 }, 0),
    at: 400,
  },
  {
    alert: "LongrunEngineIdle",
    when: "it works more than half of the time",
    series: engine({ generating: 20, updating: 15, idleActors: 25 }),
    at: 400,
  },
  {
    alert: "LongrunEngineIdle",
    when: "for two hours, as at the beginning of a run",
    series: engine({ generating: 0, updating: 0, idleActors: 60 }),
    at: 120,
  },
  {
    alert: "LongrunCheckpointOld",
    when: "none for seven hours while the run goes on",
    series: {
      [of("longrun_checkpoint_timestamp_seconds", POD)]: "0x500",
      [of("longrun_progress_timestamp_seconds", POD)]: "0+60x500",
    },
    at: 420,
    fires: { labels: pod, summary: "The newest checkpoint of run team/pizza is 7h 0m 0s old." },
  },
  {
    alert: "LongrunCheckpointOld",
    when: "the run is over: its last checkpoint may be as old as it is",
    series: {
      [of("longrun_checkpoint_timestamp_seconds", POD)]: "0x500",
      [of("longrun_progress_timestamp_seconds", POD)]: "0+60x100",
    },
    at: 420,
  },
  {
    alert: "LongrunDiskNearlyFull",
    when: "5 of 100 GB are free",
    series: { [of("longrun_volume_free_bytes", POD)]: "5e9x20", [of("longrun_volume_size_bytes", POD)]: "1e11x20" },
    at: 10,
    fires: { labels: pod, summary: "The volume of run team/pizza has 5% left." },
  },
  {
    alert: "LongrunDiskNearlyFull",
    when: "20 of 100 GB are free",
    series: { [of("longrun_volume_free_bytes", POD)]: "2e10x20", [of("longrun_volume_size_bytes", POD)]: "1e11x20" },
    at: 10,
  },
  {
    alert: "LongrunCertificateExpiring",
    when: "a learner uses one that is valid for less than five days",
    series: {
      [of("longrun_certificate_expiration_timestamp_seconds", ', certificate="own", pod="a"')]: "400000x120",
      [of("longrun_certificate_expiration_timestamp_seconds", ', certificate="authority", pod="a"')]: "9000000x120",
      [of("longrun_run_certificate_expiration_timestamp_seconds")]: "2000000x120",
    },
    at: 90,
    fires: { labels, summary: "A certificate of run team/pizza expires in 4d 13h 36m 40s." },
  },
  {
    alert: "LongrunCertificateExpiring",
    when: "a Secret of a run without pods has one",
    series: { [of("longrun_run_certificate_expiration_timestamp_seconds")]: "400000x120" },
    at: 90,
    fires: { labels, summary: "A certificate of run team/pizza expires in 4d 13h 36m 40s." },
  },
  {
    alert: "LongrunCertificateExpiring",
    when: "renewed with ten days to go",
    series: { [of("longrun_run_certificate_expiration_timestamp_seconds")]: "440000x30 2592000x90" },
    at: 110,
  },
  {
    alert: "LongrunReconcileErrors",
    when: "one in five fails",
    series: {
      'controller_runtime_reconcile_errors_total{controller="trainingrun"}': "0+2x60",
      'controller_runtime_reconcile_total{controller="trainingrun", result="error"}': "0+2x60",
      'controller_runtime_reconcile_total{controller="trainingrun", result="success"}': "0+8x60",
    },
    at: 40,
    fires: { labels: {}, summary: "20% of the controller's reconciles fail." },
  },
  {
    alert: "LongrunReconcileErrors",
    when: "a conflict now and then",
    series: {
      'controller_runtime_reconcile_errors_total{controller="trainingrun"}': "0+0.2x60",
      'controller_runtime_reconcile_total{controller="trainingrun", result="success"}': "0+10x60",
    },
    at: 40,
  },
  {
    alert: "LongrunNamespaceNotServed",
    when: "neither of two controllers may list one of two namespaces",
    series: {
      'longrun_namespace_served{namespace="a", pod="x"}': "0x60",
      'longrun_namespace_served{namespace="a", pod="y"}': "0x60",
      'longrun_namespace_served{namespace="b", pod="x"}': "1x60",
    },
    at: 20,
    fires: { labels: { namespace: "a" }, summary: "The longrun controller does not serve namespace a." },
  },
  {
    alert: "LongrunNamespaceNotServed",
    when: "a role comes after ten minutes",
    series: { 'longrun_namespace_served{namespace="a", pod="x"}': "0x10 1x50" },
    at: 20,
  },
  {
    alert: "LongrunNoLeader",
    when: "two wait and none leads",
    series: {
      'leader_election_master_status{name="longrun-controller", pod="a"}': "0x20",
      'leader_election_master_status{name="longrun-controller", pod="b"}': "0x20",
    },
    at: 10,
    fires: { labels: {}, summary: "No longrun controller leads." },
  },
  {
    alert: "LongrunNoLeader",
    when: "there is none",
    series: {},
    at: 10,
    fires: { labels: { name: "longrun-controller" }, summary: "No longrun controller leads." },
  },
  {
    alert: "LongrunNoLeader",
    when: "the lease goes from one to the other",
    series: {
      'leader_election_master_status{name="longrun-controller", pod="a"}': "1x8 _x12",
      'leader_election_master_status{name="longrun-controller", pod="b"}': "0x9 1x11",
    },
    at: 15,
  },
];
