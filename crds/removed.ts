/** Fields and values of earlier versions that this version refuses, and the treatment of runs that have them. */

/** Removed fields by path. `harmless`: the only value that meant the present behaviour [every value]. */
export const REMOVED_FIELDS: Record<string, { remedy: string; harmless?: string }> = {
  "spec.model.precision": { remedy: "remove it; learner.compute sets the precision of matrix products" },
  "spec.algorithm.klController": {
    remedy:
      "klCoefficient is used as given; remove it, and for a run that began with Adaptive create a new one with initFrom",
    harmless: "Fixed",
  },
  "spec.algorithm.klTarget": { remedy: "only klController Adaptive read it; remove it" },
  "spec.algorithm.klHorizon": { remedy: "only klController Adaptive read it; remove it" },
};

/** Removed values by path, for fields that still have other values. */
export const REMOVED_VALUES: Record<string, string> = {
  "spec.algorithm.stalenessPolicy": "Mask",
  "spec.algorithm.whitening": "Weighted",
  "spec.algorithm.timeoutWeight": "Exclude",
};

/** Removes removed fields in place, if their values meant the present behaviour. */
export function dropRemovedFields(manifest: unknown): void {
  for (const [path, { harmless }] of Object.entries(REMOVED_FIELDS))
    drop(manifest, path, (value) => harmless === undefined || value === harmless);
}

/** Returns the manifest without removed fields, as an API server with this version's CRD reads it. */
export function withoutRemovedFields<T>(manifest: T): T {
  const copy = structuredClone(manifest);
  for (const path of Object.keys(REMOVED_FIELDS)) drop(copy, path, () => true);
  return copy;
}

/** Removes removed values in place, so that defaults replace them. */
export function dropRemovedValues(manifest: unknown): void {
  for (const [path, removed] of Object.entries(REMOVED_VALUES)) drop(manifest, path, (value) => value === removed);
}

function drop(manifest: unknown, path: string, isDropped: (value: unknown) => boolean): void {
  const names = path.split(".");
  const last = names.pop()!;
  let parent = manifest;
  for (const name of names) parent = (parent as Record<string, unknown> | null | undefined)?.[name];
  if (typeof parent !== "object" || parent === null) return;
  const fields = parent as Record<string, unknown>;
  if (last in fields && isDropped(fields[last])) delete fields[last];
}
