/**
 * The milestones of Appendix C.3, in its order. The learner's instrumenter inserts them and an actor looks for them. A marker line is
 * `<nonce>:<marker>`, optionally followed by a value.
 */
export const MARKERS = [
  "imported packages",
  "loaded data",
  "defined model",
  "training loss",
  "trained model",
  "testing loss",
  "predicted test labels",
] as const;
export type Marker = (typeof MARKERS)[number];
