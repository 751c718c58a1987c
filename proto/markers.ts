/**
 * The milestones of Appendix C.3, in its order: what the learner's instrumenter inserts and an actor looks for. A marker
 * line is `<nonce>:<marker>`, perhaps with a value behind it.
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
