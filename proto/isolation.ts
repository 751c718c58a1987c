/** Isolation levels and layers of an actor's machine, in the words that the protocol and the metrics use. */

/** Best first. `Hello.isolation_level` and `ResultHeader.isolation_level` have one of these values. */
export const ISOLATION_LEVELS = ["namespaces", "landlock", "none"] as const;
export type IsolationLevel = (typeof ISOLATION_LEVELS)[number];

/** Layers that a machine may lack (`Hello.isolation_missing`); actor/layers.ts explains each. Do not change the names. */
export const MISSING_LAYERS = [
  ...(["namespaces", "landlock", "landlockTruncate", "landlockTcp", "landlockScopes"] as const),
  ...(["ownUser", "controlGroup", "processCount", "proc"] as const),
] as const;
