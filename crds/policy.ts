/** `spec.model.policy`: the name of a bundled policy, or a folder. */
import { join, resolve } from "node:path";
import { ManifestError } from "./errors.ts";

/** Bundled policies by name: folders of the repository, which images contain too. */
const BUNDLED: Record<string, string> = {
  quickstart: join(import.meta.dirname, "../manifests/quickstart/policy"),
};

/** A word without slashes and dots names a bundled policy; other values are paths. */
export const isPolicyName = (policy: string): boolean => !/[/.]/.test(policy);

/**
 * @param source name of the manifest in errors
 * @param directory base of relative folders: the manifest's folder on a machine, the mounted `model.volume` in a pod
 * @returns the policy's folder in Hugging Face format, which may not exist
 * @throws ManifestError if there is no bundled policy of this name
 */
export function policyFolder(policy: string | undefined, source: string, directory: string): string {
  if (policy === undefined)
    throw new ManifestError([
      `${source}: spec.model.source is fetched by longrun run and by the controller alone; give spec.model.policy, the folder that longrun model fetch prints`,
    ]);
  if (!isPolicyName(policy)) return resolve(directory, policy);
  const bundled = Object.hasOwn(BUNDLED, policy) ? BUNDLED[policy] : undefined;
  if (bundled !== undefined) return bundled;
  const names = Object.keys(BUNDLED).join(", ");
  throw new ManifestError([
    `${source}: spec.model.policy is ${policy}: longrun has no bundled policy of this name; give one of ${names}, or ./${policy} for a folder`,
  ]);
}
