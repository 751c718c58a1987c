/** How well an actor's machine isolates programs, in the words that go over the wire and into labels of metrics. */

/** Best first. `Hello.isolation_level` and `ResultHeader.isolation_level` are one of these. */
export const ISOLATION_LEVELS = ["namespaces", "landlock", "none"] as const;
export type IsolationLevel = (typeof ISOLATION_LEVELS)[number];

/** Layers that a machine may lack (`Hello.isolation_missing`); actor/layers.ts says what each means. Do not change them. */
export const MISSING_LAYERS = [
  ...(["namespaces", "landlock", "landlockTruncate", "landlockTcp", "landlockScopes"] as const),
  ...(["ownUser", "controlGroup", "processCount", "proc"] as const),
] as const;
