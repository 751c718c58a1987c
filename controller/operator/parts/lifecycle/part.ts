/** The stage of a run: suspension, the end, and the finalizer that delays its deletion. */
import type { Run } from "../../desired/names.ts";
import type { Part } from "../../part.ts";
import type { Runtime } from "../../runtimes/effective.ts";
import { currentLearnerHash } from "../learner/pod-template.ts";
import { lifecycleConditions } from "./conditions.ts";
import { lastCheckpoint, reconcileFinalizer } from "./deletion.ts";
import { derive } from "./derived.ts";
import { type LifecyclePlan, planLifecycle } from "./lifecycle.ts";
import { type LifecycleMemory, suspend } from "./suspension.ts";

export const lifecycle: Part<LifecycleMemory, unknown, "queue" | "flavors", "lifecycle" | "derived"> = {
  name: "lifecycle",
  needs: ["queue", "flavors"],
  gives: ["lifecycle", "derived"],
  leave: lastCheckpoint,
  async reconcile(look, _, { queue, flavors }) {
    const { observed, memory } = look;
    const derived = derive(look, flavors, memory.derived);
    const { remember, ...result } = suspend(look, queue);
    const { suspension } = { ...memory, ...remember };
    const lifecycle = planLifecycle(observed, suspension, currentLearnerHash(look, derived), queue);
    return { ...result, remember: { ...remember, derived }, given: { lifecycle, derived } };
  },
  report({ observed, memory, runtime }, _, { lifecycle }) {
    const written = memory.suspension?.checkpoint;
    const checkpoint = observed.link?.status?.checkpoint ?? written ?? observed.run.status?.checkpoint;
    const conditions = lifecycleConditions({ observed, lifecycle, written });
    return { conditions, status: { checkpoint, runtime: runtimeStatus(observed.run, runtime, lifecycle) } };
  },
};

/** What `status.runtime` has: a suspended run keeps no runtime, and one that has ended keeps its last. */
function runtimeStatus({ status }: Run, runtime: Runtime | undefined, { stage }: LifecyclePlan) {
  if (stage === "Ended") return status?.runtime;
  return stage === "Suspended" ? undefined : runtime?.status;
}

export const finalizer: Part<object, unknown, "lifecycle"> = {
  name: "finalizer",
  needs: ["lifecycle"],
  reconcile: async (look, _, { lifecycle }) => ({ stop: await reconcileFinalizer(look, lifecycle) }),
};
