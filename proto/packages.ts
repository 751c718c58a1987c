import versions from "./packages.json" with { type: "json" };

/**
 * Packages that programs can import, what they need in turn left out: prompts name them (Appendix C.1), and
 * `actor/sandbox/lock.py` pins these versions of them, by the oldest Python that each goes with, in requirements.txt, from
 * which a laptop's environment and the sandbox image are made.
 */
export const PACKAGES: readonly string[] = Object.keys(versions["3.11"]);
