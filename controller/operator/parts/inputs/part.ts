/** What the learner starts from: its ConfigMap, the fetched model, the copied checkpoint. */
import { CONFIG_MAP, JOB, POD } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { type Tried, tryAll } from "../../steps.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { keptLearnerOf } from "../learner/pod-template.ts";
import { reconcileInit } from "./init-job.ts";

export const inputs: Part<object, unknown, "lifecycle" | "derived" | "claimName" | "mayCreate"> = {
  name: "inputs",
  needs: ["lifecycle", "derived", "claimName", "mayCreate"],
  isChild: true,
  kinds: () => [CONFIG_MAP, JOB, POD],
  async reconcile(look, _, { lifecycle, derived, claimName, mayCreate, failed: isBlocked }) {
    if (!mayCreate) return {};
    const { run } = look.observed;
    // The learner of an earlier version reads the ConfigMap that its controller made.
    const isKept = look.observed.config && keptLearnerOf(look, derived, claimName);
    const config: Partial<Tried> = isKept ? {} : await tryAll(run, () => applyChild(look, CONFIG_MAP, derived.config));
    if (config.failed || isBlocked || lifecycle.stage !== "Initialising") return config;
    const { refused, error } = await tryAll(run, () => reconcileInit(look, claimName));
    return { refused, error };
  },
};
