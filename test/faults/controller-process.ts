/**
 * A controller in a process of its own, which a test can stop and continue: `node controller-process.ts KUBECONFIG IDENTITY LEASE_NAMESPACE
 * NAMESPACE`. The lease's times are about half of the defaults.
 */
import { KubeConfig } from "@kubernetes/client-node";
import { pino } from "pino";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { startOperator } from "../../controller/operator/operator.ts";

const [kubeconfig, identity, leaseNamespace, namespace] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig!);
const operator = await startOperator({
  config,
  settings: DEFAULT_SETTINGS,
  log: pino({ level: process.env.CONTROLLER_LOG ?? "silent" }, pino.destination(2)),
  namespaces: [namespace!],
  inCluster: true,
  dial: () => Promise.reject(new Error("no learner is reached from here")),
  lease: { namespace: leaseNamespace!, identity: identity!, leaseSeconds: 8, renewSeconds: 6, retrySeconds: 1 },
});
await operator.done;
