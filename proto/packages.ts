import versions from "./packages.json" with { type: "json" };

export type PackageSet = keyof typeof versions;

/**
 * Packages that programs can import, by `spec.actors.packages`, without their dependencies. Prompts name them (Appendix C.1).
 * `actor/sandbox/lock.py` pins these versions in the set's requirements, by the oldest Python that supports each; a laptop's environment
 * and the sandbox image are made from the requirements.
 */
export const PACKAGES: Record<PackageSet, readonly string[]> = {
  Basic: Object.keys(versions.Basic["3.11"]),
  Paper: Object.keys(versions.Paper["3.11"]),
};

/** Normalizes a name as package indexes do: https://packaging.python.org/en/latest/specifications/name-normalization/ */
export const normalizedName = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, "-");
