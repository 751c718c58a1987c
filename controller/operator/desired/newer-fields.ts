/** Fills in defaults of fields that an older CRD drops, because an upgrade may reach the controller before the CRD. */
import type { Run } from "./names.ts";

export const NEWER_DEFAULTS = {
  failurePolicy: { retries: 20 },
  learner: { disruption: "Checkpoint" },
  actors: { evictionGraceSeconds: 600 },
  results: { deadlineSeconds: 21_600 },
} as const;

/** Returns the run as an API server with this version's CRD would have stored it. */
export function withNewerFields(run: Run): Run {
  const { spec } = run;
  const { failurePolicy, learner, actors, results } = NEWER_DEFAULTS;
  return {
    ...run,
    spec: {
      ...spec,
      failurePolicy: { ...failurePolicy, ...spec.failurePolicy },
      learner: { ...learner, ...spec.learner },
      actors: { ...actors, ...spec.actors },
      ...(spec.results && { results: { ...results, ...spec.results } }),
    },
  };
}
