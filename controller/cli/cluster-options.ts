/** The commands that work on a cluster, with their options. */
import type { Values } from "../../proto/command-line.ts";
import { positive } from "../numbers.ts";

const KUBECONFIG = {
  "kubeconfig <FILE>": "how to reach the cluster (default: the pod's own account, else as kubectl)",
} as const;

const NAMESPACES = {
  "namespace <NAME...>": "only this namespace; may be repeated (default: all)",
} as const;

export const CONTROLLER = {
  name: "longrun controller",
  description: "reconcile the TrainingRuns of a Kubernetes cluster, from within it or from outside",
  options: {
    ...KUBECONFIG,
    ...NAMESPACES,
    "namespace-selector <LABELS>": 'only namespaces with these labels, such as team=a or "team in (a, b)"',
    "controller-class <NAME>": "only runs whose spec.controllerClass is this (default: runs without a class)",
    "leader-elect":
      "elect one active replica by the Lease longrun-controller, in the pod's namespace, else in the first --namespace",
    "metrics-address <HOST:PORT>": { help: "address of /metrics, /healthz and /readyz", default: ":8080" },
    "image <IMAGE>": "learner's image for runs that name none; required, like the next two",
    "actor-image <IMAGE>": "image of actors' supervisors for runs that name none",
    "sandbox-image <IMAGE>": "image of sandboxes for runs that name none",
    "image-pull-policy <POLICY>": {
      help: "pull policy of these images, unless a run sets its own",
      choices: ["Always", "IfNotPresent", "Never"],
      default: "IfNotPresent",
    },
    "default-runtime <NAME>": "TrainingRuntime of runs without spec.runtimeRef (default: none)",
    kueue: "a run that names a queue starts when Kueue admits it; needs Kueue's CRDs",
    "webhook-allow <HOST...>":
      "allowed host for webhooks of runs: a name or IP address, or *.DOMAIN for internet addresses only; may be repeated, or separated by commas (default: none)",
    "dns <JSON>":
      'DNS servers that pods of runs may ask: {"to": [a NetworkPolicy\'s peers], "ports": [numbers]} (default: those of common clusters)',
    "workers <N>": { help: "runs that are reconciled at once", default: "8", as: positive },
    "qps <N>": { help: "requests a second to the API server, on average", default: "50", as: positive },
    "burst <N>": { help: "requests at once after a pause", default: "100", as: positive },
  },
  examples: ["longrun controller --image learner:1 --actor-image actor:1 --sandbox-image sandbox:1 --namespace team"],
} as const;

export const SMOKE_TEST = {
  name: "longrun smoke-test",
  description: "test an installation: create a TrainingRun on a cluster, wait for its end, delete it",
  arguments: { "<FILE>": "TrainingRun manifest" },
  options: {
    ...KUBECONFIG,
    "namespace <NAME>": { help: "namespace of the TrainingRun", default: "default" },
    "timeout <SECONDS>": { help: "longest wait for its end", default: "900", as: positive },
  },
  examples: ["longrun smoke-test manifests/quickstart/trainingrun.yaml --timeout 600"],
} as const;

export const RELEASE_RUNS = {
  name: "longrun release-runs",
  description: "remove longrun's finalizer from all TrainingRuns when no controller is left",
  options: {
    ...KUBECONFIG,
    ...NAMESPACES,
    "controller <NAMESPACE/LEASE>": "only runs that this controller has claimed, or none",
    "quiet <SECONDS>": { help: "end after this time without a finalizer", default: "10", as: positive },
  },
  examples: ["longrun release-runs --namespace team"],
} as const;

export const DEBUG = {
  name: "longrun debug",
  description: "write a support bundle of a run, without secrets, answers or weights",
  arguments: { "<RUN>": "run folder; or NAME or NAMESPACE/NAME of a TrainingRun on the cluster" },
  options: {
    "namespace <NAMESPACE>": "namespace of the TrainingRun (default: the context's)",
    ...KUBECONFIG,
    "context <NAME>": "context of the kubeconfig (default: the current one)",
    "out <FILE>": "path of the bundle (default: longrun-debug-RUN-TIME.tar.gz)",
  },
  examples: ["longrun debug runs/short", "longrun debug team/quickstart --out bundle.tar.gz"],
} as const;

export type ControllerOptions = Values<typeof CONTROLLER.options>;
