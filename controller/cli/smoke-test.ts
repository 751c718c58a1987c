/**
 * `longrun smoke-test`: creates a TrainingRun on a cluster, waits for its end and deletes it. `helm test` runs it to check that the
 * controller, the images, a volume and the network between learner and actors work together.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { onlyRun, parseTrainingRun, readManifestFile, type TrainingRun } from "../../crds/trainingrun.ts";
import { ControllerError, EXIT } from "../errors.ts";
import type { Run } from "../operator/desired/names.ts";
import type { ApiClient } from "../operator/kube/api-client.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { TRAINING_RUN } from "../operator/kube/resources.ts";
import { findCondition } from "../operator/status/conditions.ts";

const POLL_SECONDS = 2;
/** Time within which a controller of any load looks at a new run; after it the test fails, because none serves the namespace. */
const UNSEEN_SECONDS = 120;

interface SmokeTestOptions {
  client: Pick<ApiClient, "create" | "get" | "delete">;
  namespace: string;
  /** Text of a TrainingRun. */
  manifest: string;
  /** Name of the manifest in errors. */
  source: string;
  timeoutSeconds: number;
  say: (line: string) => void;
  signal: AbortSignal;
  pollSeconds?: number;
  unseenSeconds?: number;
}

/**
 * @returns the exit status
 * @throws ControllerError `failed` with the run's last status; ManifestError
 */
export async function smokeTest(options: SmokeTestOptions): Promise<number> {
  const { client, namespace, manifest, source, timeoutSeconds, say, signal } = options;
  const { pollSeconds = POLL_SECONDS, unseenSeconds = UNSEEN_SECONDS } = options;
  const object = onlyRun(readManifestFile(manifest, source), source);
  const { name } = parseTrainingRun(object, source, [], { cluster: true }).metadata;
  const what = `TrainingRun ${namespace}/${name}`;
  await removeEarlier(options, name);
  // Sent unchanged: the cluster fills in defaults, because its CRD may be of another release.
  const made = await create(client, object.contents.toJS(object.document) as TrainingRun, namespace);
  say(`${what} is made`);
  const key = { namespace, name };
  const startMs = Date.now();
  try {
    for (let last = ""; ; await sleep(pollSeconds * 1000, undefined, { signal })) {
      const run = await client.get<Run>(TRAINING_RUN, key, { signal });
      if (run?.metadata.uid !== made.metadata.uid)
        throw new ControllerError("failed", `${what} was deleted by somebody else`);
      const { phase, conditions } = run.status ?? {};
      const ready = findCondition(conditions, "Ready");
      const now = `${phase ?? "not seen by a controller yet"}${ready ? `: ${ready.reason}: ${ready.message}` : ""}`;
      if (now !== last) say(now);
      last = now;
      if (phase === "Succeeded") return EXIT.done;
      if (phase === "Failed")
        throw new ControllerError("failed", `${what} failed: ${findCondition(conditions, "Succeeded")?.message}`);
      const seconds = (Date.now() - startMs) / 1000;
      if (!run.status && seconds > unseenSeconds)
        throw new ControllerError(
          "failed",
          `no controller has seen ${what} within ${unseenSeconds} s: see whether one runs, and whether it serves this namespace (chart: watch.namespaces, watch.namespaceSelector, test.namespace)`,
        );
      if (seconds > timeoutSeconds)
        throw new ControllerError("failed", `${what} is not done after ${timeoutSeconds} s: ${now}`);
    }
  } finally {
    await client.delete(TRAINING_RUN, key, { uid: made.metadata.uid });
  }
}

/** Removes a run of an earlier test that was interrupted. */
async function removeEarlier(
  { client, namespace, timeoutSeconds, signal, pollSeconds = POLL_SECONDS }: SmokeTestOptions,
  name: string,
) {
  const deadlineMs = Date.now() + timeoutSeconds * 1000;
  for (;;) {
    const found = await client.get<Run>(TRAINING_RUN, { namespace, name }, { signal });
    if (!found) return;
    if (Date.now() > deadlineMs)
      throw new ControllerError(
        "failed",
        `TrainingRun ${namespace}/${name} of an earlier test is not gone after ${timeoutSeconds} s`,
      );
    if (!found.metadata.deletionTimestamp)
      await client.delete(TRAINING_RUN, { namespace, name }, { uid: found.metadata.uid });
    await sleep(pollSeconds * 1000, undefined, { signal });
  }
}

async function create(client: SmokeTestOptions["client"], run: TrainingRun, namespace: string): Promise<Run> {
  try {
    return await client.create(TRAINING_RUN, { ...run, metadata: { ...run.metadata, namespace } } as Run);
  } catch (cause) {
    if (!(cause instanceof ApiError) || cause.status !== 404) throw cause;
    throw new ControllerError(
      "failed",
      "the cluster does not know TrainingRuns: install the CRD (crds.enabled of the chart)",
      { cause },
    );
  }
}
