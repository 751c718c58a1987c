/** `kubectl longrun volumes`: lists volumes of runs that are deleted or over. */

import { ControllerError } from "../errors.ts";
import { harmless } from "../harmless.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { CHILD_SELECTOR, RUN, RUN_UID, type Run } from "../operator/desired/names.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim, TRAINING_RUN } from "../operator/kube/resources.ts";
import type { KubeObject, Resource } from "../operator/kube/types.ts";
import { retained, waitingFor } from "../operator/parts/volume/retained-volumes.ts";
import type { Cluster } from "./cluster.ts";
import { isOver } from "./status.ts";
import { span } from "./text.ts";

interface ListedVolume {
  namespace: string;
  name: string;
  run: string;
  /** Phase of its run, or `gone`. */
  state: string;
  size: string;
  ageSeconds: number;
  /** Time until the controller deletes it; absent: it stays until a person deletes it. */
  leftSeconds?: number;
  /** Run that copies a checkpoint from the volume, or takes it over (initFrom): the controller does not delete it before that run has started. */
  neededBy?: string;
}

export async function listVolumes(
  { client, namespace }: Cluster,
  { allNamespaces, json }: { allNamespaces: boolean; json: boolean },
  screen: Screen,
): Promise<void> {
  const all = async <T extends KubeObject>(resource: Resource, labelSelector?: string): Promise<T[]> => {
    const where = { ...(!allNamespaces && { namespace }), ...(labelSelector && { labelSelector }) };
    return (await client.list<T>(resource, where)).items;
  };
  const [claims, runs] = await Promise.all([
    all<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, CHILD_SELECTOR),
    all<Run>(TRAINING_RUN),
  ]).catch((cause: unknown) => {
    throw cause instanceof ApiError ? new ControllerError("failed", cause.message, { cause }) : cause;
  });
  const volumes = volumesOf(claims, runs, Date.now());
  if (json) return void screen.write(`${JSON.stringify(volumes)}\n`);
  if (volumes.length === 0) return void screen.write("no volume of a run that is gone or over\n");
  const rows = volumes.map((it) => [
    ...(allNamespaces ? [it.namespace] : []),
    ...[it.name, it.run, it.state, it.size, span(it.ageSeconds)],
    deletionOf(it),
  ]);
  const head = [...(allNamespaces ? ["NAMESPACE"] : []), "NAME", "RUN", "STATE", "SIZE", "AGE", "DELETED"];
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]!.length), title.length),
  );
  for (const row of [head, ...rows])
    screen.write(`${harmless(row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ")).trimEnd()}\n`);
}

function deletionOf({ leftSeconds, neededBy }: ListedVolume): string {
  if (leftSeconds === undefined) return "never";
  return leftSeconds === 0 && neededBy !== undefined ? `once ${neededBy} has started` : `in ${span(leftSeconds)}`;
}

/** Returns the volumes of runs that are gone or over, the oldest first. */
export function volumesOf(claims: PersistentVolumeClaim[], runs: Run[], nowMs: number): ListedVolume[] {
  const byUid = new Map(runs.map((run) => [run.metadata.uid, run]));
  return claims
    .flatMap((claim): ListedVolume[] => {
      const { namespace = "", name, labels = {}, creationTimestamp } = claim.metadata;
      const run = byUid.get(labels[RUN_UID] ?? "");
      if (run && !isOver(run)) return [];
      const kept = run ? undefined : retained(claim);
      const since = kept?.sinceMs ?? nowMs;
      const inNamespace = runs.filter(({ metadata }) => metadata.namespace === namespace);
      const neededBy = waitingFor(claim, inNamespace)?.metadata.name;
      const size = claim.status?.capacity?.storage ?? claim.spec?.resources?.requests?.storage ?? "?";
      return [
        {
          namespace,
          name,
          run: labels[RUN] ?? "?",
          state: run?.status?.phase ?? "gone",
          size,
          ageSeconds: Math.round((nowMs - Date.parse(creationTimestamp ?? "")) / 1000),
          ...(kept && neededBy !== undefined && { neededBy }),
          ...(kept && { leftSeconds: Math.max(0, Math.round(kept.retainSeconds - (nowMs - since) / 1000)) }),
        },
      ];
    })
    .sort((a, b) => b.ageSeconds - a.ageSeconds || a.name.localeCompare(b.name));
}
