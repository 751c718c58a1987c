/** Kueue: whether the run may have pods, on which nodes, and its Workload. */
import { WORKLOAD } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { tryStep } from "../../steps.ts";
import { hasEnded, isOver } from "../lifecycle/lifecycle.ts";
import { type Flavors, findFlavors, placed } from "./flavors.ts";
import { type Asked, findAdmission, reconcileWorkload } from "./workload.ts";

interface AdmissionMemory {
  workload?: Asked | undefined;
  flavors?: Flavors | undefined;
}

/** Reads Kueue's answer. Later parts see the run with the nodes that Kueue chose in its pod templates. */
export const admission: Part<AdmissionMemory, unknown, never, "queue" | "workload" | "flavors" | "unplaced"> = {
  name: "admission",
  gives: ["queue", "workload", "flavors", "unplaced"],
  async reconcile(look) {
    const { observed, memory } = look;
    const { queue, asked, workload } = findAdmission(look, memory.workload);
    const isAdmitted = queue.state === "admitted" && !hasEnded(observed);
    let { flavors } = memory;
    const { refused: unplaced } = await tryStep(observed.run, async () => {
      flavors = isAdmitted ? await findFlavors(look, flavors) : undefined;
      return {};
    });
    if (flavors && !unplaced) observed.run = placed(observed.run, flavors.choices);
    return { remember: { workload: asked, flavors }, given: { queue, workload, flavors, unplaced } };
  },
};

/**
 * Keeps the Workload. While it is refused, the run cannot take Kueue's nodes, or its TrainingRuntime is missing or refuses it, no child may
 * be written.
 */
export const quota: Part<object, unknown, "lifecycle" | "workload" | "unplaced", "held" | "mayCreate"> = {
  name: "quota",
  needs: ["lifecycle", "workload", "unplaced"],
  gives: ["held", "mayCreate"],
  isChild: true,
  kinds: ({ kueue }) => (kueue ? [WORKLOAD] : []),
  async reconcile(look, _, { lifecycle, workload, unplaced }) {
    const { run, deployment, refusal } = look.observed;
    const why = refusal ?? unplaced;
    const isIdle = lifecycle.stage === "Suspended" || isOver(lifecycle.stage);
    // A run that needs no nodes returns its quota, refused or not. One whose runtime is missing, perhaps for a moment, stays in the queue.
    const returns = isIdle || (lifecycle.stage === "Refused" && refusal?.reason === "RuntimeRefuses");
    const reconciles = why === undefined || (refusal !== undefined && returns);
    const written = reconciles
      ? await tryStep(run, async () => {
          await reconcileWorkload(look, lifecycle, workload);
          return {};
        })
      : {};
    const refused = why ?? written.refused;
    // A run that cannot start, or may not start yet, gets no children.
    const waits = (lifecycle.stage === "Refused" || lifecycle.stage === "Queued") && !deployment;
    const held = refused !== undefined;
    return {
      refused: isIdle && refused === refusal ? undefined : refused,
      given: { held, mayCreate: !held && !waits },
    };
  },
};
