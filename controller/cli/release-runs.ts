/**
 * `longrun release-runs`: removes longrun's finalizer from every TrainingRun, because no controller with the right to do it is left, and
 * the claim of the controller that is gone. The runs and their volumes stay; each run can then be deleted, or served by another
 * controller. `helm uninstall` runs this at its end.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EXIT } from "../errors.ts";
import { CLAIM } from "../operator/claims/claims.ts";
import type { Run } from "../operator/desired/names.ts";
import type { ApiClient, ListOptions } from "../operator/kube/api-client.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { TRAINING_RUN } from "../operator/kube/resources.ts";
import { FINALIZER } from "../operator/parts/lifecycle/deletion.ts";

const PAGE = 500;

export interface ReleaseOptions {
  client: Pick<ApiClient, "list" | "mergePatch">;
  /** Empty: all namespaces. */
  namespaces: readonly string[];
  /** Namespace and name of the Lease of the controller that is gone. Undefined: runs of every controller. */
  controller?: string | undefined;
  /** A controller that is stopping may add its finalizer again: repeat until none was found for this long. */
  quietSeconds: number;
  say: (line: string) => void;
  signal: AbortSignal;
}

/**
 * Serves each namespace by itself: one that the API server refuses keeps no other from being released.
 *
 * @returns the exit status: `failed` if a namespace or a run was refused. @throws ApiError
 */
export async function releaseRuns({
  client,
  namespaces,
  controller,
  quietSeconds,
  say,
  signal,
}: ReleaseOptions): Promise<number> {
  const refused = new Set<string>();
  const refuse = (what: string, error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    if (!refused.has(what)) say(`${what} is refused: ${error.message}`);
    refused.add(what);
  };
  for (let quietSinceMs = Date.now(); ; await sleep(Math.min(quietSeconds, 1) * 1000, undefined, { signal })) {
    let found = false;
    for (const namespace of namespaces.length > 0 ? namespaces : [undefined])
      try {
        for await (const run of runsOf(client, { ...(namespace !== undefined && { namespace }), signal })) {
          const holder = run.metadata.annotations?.[CLAIM];
          if (controller !== undefined && holder !== undefined && holder !== controller) continue;
          const isClaimed = controller !== undefined && holder === controller;
          if (!isClaimed && !run.metadata.finalizers?.includes(FINALIZER)) continue;
          const name = `TrainingRun ${run.metadata.namespace}/${run.metadata.name}`;
          const done = await release(client, run).catch((error) => refuse(name, error));
          if (done === undefined) continue;
          found = true;
          say(`${name}${done ? " is released" : " has changed: once more"}`);
        }
      } catch (error) {
        if (namespace === undefined) throw error;
        refuse(`namespace ${namespace}`, error);
      }
    if (found) quietSinceMs = Date.now();
    else if (Date.now() - quietSinceMs >= quietSeconds * 1000) return refused.size > 0 ? EXIT.failed : EXIT.done;
  }
}

/** Yields no run if the cluster does not know TrainingRuns (any more). */
async function* runsOf(client: ReleaseOptions["client"], options: ListOptions): AsyncGenerator<Run> {
  let next: string | undefined;
  do {
    const page = await client
      .list<Run>(TRAINING_RUN, { ...options, limit: PAGE, ...(next !== undefined && { continue: next }) })
      .catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      });
    yield* page?.items ?? [];
    next = page?.metadata?.continue || undefined;
  } while (next !== undefined);
}

/** @returns false if the run has changed since it was read */
async function release(client: ReleaseOptions["client"], { metadata }: Run): Promise<boolean> {
  const { namespace, name, uid, resourceVersion, annotations, finalizers = [] } = metadata;
  const patch = {
    uid,
    resourceVersion,
    finalizers: finalizers.filter((it) => it !== FINALIZER),
    ...(annotations?.[CLAIM] !== undefined && { annotations: { [CLAIM]: null } }),
  };
  try {
    await client.mergePatch(TRAINING_RUN, { namespace, name }, { metadata: patch });
    return true;
  } catch (error) {
    if (error instanceof ApiError && [404, 409].includes(error.status)) return false;
    throw error;
  }
}
