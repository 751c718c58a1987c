import versions from "./packages.json" with { type: "json" };

export type PackageSet = keyof typeof versions;

/**
 * Packages that programs can import, by `spec.actors.packages`, what they need in turn left out: prompts name them
 * (Appendix C.1), and `actor/sandbox/lock.py` pins these versions of them, by the oldest Python that each goes with, in the
 * set's requirements, from which a laptop's environment and the sandbox image are made.
 */
export const PACKAGES: Record<PackageSet, readonly string[]> = {
  Basic: Object.keys(versions.Basic["3.11"]),
  Paper: Object.keys(versions.Paper["3.11"]),
};

/** As package indexes compare names: https://packaging.python.org/en/latest/specifications/name-normalization/ */
export const normalizedName = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, "-");
