/** The copies of results into a bucket (`spec.results`). */
import { recordEvent } from "../../context.ts";
import { JOB, POD } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { stuckJob } from "../../status/warnings.ts";
import {
  type CopyJob,
  observeResults,
  owesResults,
  reconcileResults,
  resultsStatus,
  untoldFailure,
} from "./results.ts";

export const results: Part<object, CopyJob> = {
  name: "results",
  kinds: () => [JOB, POD],
  observe: (look) => ({ facts: observeResults(look) }),
  owes: owesResults,
  expire(look, copy) {
    const failure = untoldFailure(look, copy);
    if (failure !== undefined) recordEvent(look, "ResultsNotPushed", failure);
  },
  reconcile: reconcileResults,
  stuck: ({ nowMs }, { job, pod }) => stuckJob(job, pod, nowMs),
  report(look, copy, _, trouble) {
    const status = resultsStatus(look, copy, trouble);
    return status ? { status: { results: status } } : {};
  },
};
