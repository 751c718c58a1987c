/**
 * A process that tries to lead. While it leads, it keeps writing its identity to the config map `default/written` like the controller: with
 * the precondition that nobody wrote since it last read the object. A test stops and continues it by signals.
 *
 *     node controller/operator/kube/runtime/leader.fixture.ts KUBECONFIG IDENTITY LEASE_SECONDS RENEW_SECONDS RETRY_SECONDS
 *
 * Prints a line for `leading`, each `held back: WHY`, `refused: WHY` and `lost: WHY`. Exits with 3 when the lease is lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { ApiClient } from "../api-client.ts";
import { isConflict, LeaseLostError } from "../errors.ts";
import { CONFIG_MAP, type ConfigMap } from "../resources.ts";
import { LeaderElector } from "./leader-elector.ts";

const [kubeconfig = "", identity = "", leaseSeconds, renewSeconds, retrySeconds] = process.argv.slice(2);
const config = new KubeConfig();
config.loadFromFile(kubeconfig);
const elector = new LeaderElector({
  client: new ApiClient(config),
  namespace: "default",
  name: "paused",
  identity,
  leaseSeconds: Number(leaseSeconds),
  renewSeconds: Number(renewSeconds),
  retrySeconds: Number(retrySeconds),
  onLeading: async (signal) => {
    process.stdout.write("leading\n");
    let seen: { uid?: string; resourceVersion?: string } = {};
    while (!signal.aborted) {
      try {
        const { metadata } = await writer.apply(CONFIG_MAP, written(seen));
        seen = { uid: metadata.uid!, resourceVersion: metadata.resourceVersion! };
      } catch (error) {
        // Stopped between the check of the lease and the write: only the precondition is left.
        const what = error instanceof LeaseLostError ? "held back" : isConflict(error) ? "refused" : undefined;
        if (!what) throw error;
        process.stdout.write(`${what}: ${(error as Error).message}\n`);
      }
      await sleep(5);
    }
  },
  onLost: (why) => process.stdout.write(`lost: ${why}\n`, () => process.exit(3)),
});
const writer = new ApiClient(config, { qps: 1000, burst: 1000, beforeWrite: elector.assertLeading });
const written = (seen: { uid?: string; resourceVersion?: string }): ConfigMap => ({
  metadata: { namespace: "default", name: "written", ...seen },
  data: { by: identity, at: String(Date.now()) },
});
await elector.run(new AbortController().signal);
