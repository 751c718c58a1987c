/** `spec.model.policy`: the name of a policy that comes with longrun, or a folder. */
import { join, resolve } from "node:path";
import { ManifestError } from "./errors.ts";

/** By name: folders of the repository, which images hold too. */
const BUNDLED: Record<string, string> = {
  quickstart: join(import.meta.dirname, "../manifests/quickstart/policy"),
};

/** A word without a slash or a dot names a bundled policy; whatever else is a path. */
export const isPolicyName = (policy: string): boolean => !/[/.]/.test(policy);

/**
 * @param source what errors call the manifest
 * @param directory where relative folders start from: the manifest's on a machine, the mounted `model.volume` in a pod
 * @returns the policy's folder, in Hugging Face format if it is there
 * @throws ManifestError if no policy of this name comes with longrun
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
    `${source}: spec.model.policy is ${policy}: longrun brings no policy of this name; give one of ${names}, or ./${policy} for a folder`,
  ]);
}
