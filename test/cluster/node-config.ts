/** Configuration of the parts of a test's node: pure functions of their paths. */

/** Addresses of a test's cluster, from the ranges that are reserved for benchmarks and for private use. */
export const ADDRESSES = {
  /** The machine's end of the link to the node, where the API server listens. */
  machine: "198.18.44.1",
  node: "198.18.44.2",
  linkPrefix: 30,
  pods: "10.244.0.0/16",
  services: "10.96.0.0/16",
  /** The first address of the services' range: `kubernetes.default.svc`. */
  apiService: "10.96.0.1",
} as const;

export const NODE_NAME = "longrun-test";
export const PAUSE_IMAGE = "docker.io/longrun-test/pause:1";

/** Returns the node's folders, all below `folder`. */
export function nodeFolders(folder: string) {
  const inFolder = (name: string) => `${folder}/${name}`;
  return {
    containerd: inFolder("containerd"),
    containerdState: inFolder("containerd-state"),
    containerdSocket: inFolder("containerd.sock"),
    kubelet: inFolder("kubelet"),
    cni: inFolder("cni"),
    podLogs: inFolder("pod-logs"),
    volumes: inFolder("volumes"),
    pids: inFolder("pids"),
    logs: inFolder("logs"),
  };
}

/** For containerd 1.6 and 1.7. */
export function containerdConfig(folder: string, cniPlugins: string): string {
  const at = nodeFolders(folder);
  return `version = 2
root = "${at.containerd}"
state = "${at.containerdState}"
# Debian's default set has plugins for zfs, btrfs and devmapper, which want what is not here.
disabled_plugins = ["io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "${at.containerdSocket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${at.containerd}-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE no score may be lowered, and runc would fail with "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_selinux = false
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniPlugins}"
    conf_dir = "${at.cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`;
}

/** One link per pod, and routing; no bridge. */
export function cniConfig(folder: string): string {
  return JSON.stringify({
    cniVersion: "1.0.0",
    name: "longrun-test",
    plugins: [
      {
        type: "ptp",
        ipMasq: true,
        ipam: {
          type: "host-local",
          dataDir: `${folder}/addresses`,
          ranges: [[{ subnet: ADDRESSES.pods }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
    ],
  });
}

export function kubeletConfig(folder: string, cgroupRoot: string): string {
  const at = nodeFolders(folder);
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: ADDRESSES.node,
    port: 10250,
    readOnlyPort: 0,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: `${folder}/kubelet-client-ca.crt` },
    },
    authorization: { mode: "AlwaysAllow" },
    cgroupDriver: "cgroupfs",
    cgroupRoot,
    // Tests also run on hosts with cgroup v1.
    failCgroupV1: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    oomScoreAdj: 0,
    makeIPTablesUtilChains: false,
    clusterDNS: [ADDRESSES.node],
    clusterDomain: "cluster.local",
    resolvConf: `${folder}/resolv.conf`,
    containerRuntimeEndpoint: `unix://${at.containerdSocket}`,
    podLogsDir: at.podLogs,
    volumePluginDir: `${folder}/volume-plugins`,
    // Images cannot be pulled again, so none may be deleted on a disk that is fuller than 85 %.
    imageGCHighThresholdPercent: 100,
    evictionHard: { "memory.available": "50Mi", "nodefs.available": "100Mi", "imagefs.available": "100Mi" },
    // Short intervals, because tests wait for them.
    nodeStatusUpdateFrequency: "4s",
    syncFrequency: "10s",
    // By default a container that ends again restarts after 10 s, then 20 s, and so on.
    featureGates: { KubeletCrashLoopBackOffMax: true },
    crashLoopBackOff: { maxContainerRestartPeriod: "1s" },
    maxPods: 60,
  });
}

export function kubeProxyConfig(kubeconfig: string): string {
  return JSON.stringify({
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    bindAddress: ADDRESSES.node,
    healthzBindAddress: "127.0.0.1:10256",
    metricsBindAddress: "127.0.0.1:10249",
    clientConnection: { kubeconfig },
    hostnameOverride: NODE_NAME,
    mode: "iptables",
    clusterCIDR: ADDRESSES.pods,
    oomScoreAdj: 0,
    // The sizes of the connection table are the machine's and cannot be set in a network namespace.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    iptables: { localhostNodePorts: false, minSyncPeriod: "0s" },
  });
}

export function corefile(kubeconfig: string): string {
  return `cluster.local:53 in-addr.arpa:53 {
  bind ${ADDRESSES.node}
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${kubeconfig} test
    ttl 5
  }
}
`;
}
