/** The run's volume: its claim, and the detachment from a lost node. */
import { childName } from "../../desired/names.ts";
import { PERSISTENT_VOLUME_CLAIM } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { IndependentSteps } from "../../steps.ts";
import { chooseClaim, reconcileVolume } from "./claim.ts";
import { type DetachMemory, forceDetach } from "./force-detach.ts";

interface VolumeMemory {
  /** Name of the claim. */
  volume: string;
}

/** Knows the claim's name, also of a deleted claim. */
export const volumeName: Part<VolumeMemory, unknown, never, "claimName"> = {
  name: "volume-name",
  gives: ["claimName"],
  initial: (run) => ({ volume: childName(run, "data") }),
  observe: ({ observed: { volume }, memory }) => ({
    facts: undefined,
    remember: { volume: volume?.metadata.name ?? memory.volume },
  }),
  reconcile: async ({ memory: { volume } }) => ({ given: { claimName: volume } }),
};

export const volume: Part<object, unknown, "claimName" | "mayCreate", "claimName"> = {
  name: "volume",
  needs: ["claimName", "mayCreate"],
  gives: ["claimName"],
  isChild: true,
  kinds: () => [PERSISTENT_VOLUME_CLAIM],
  async reconcile(look, _, { claimName, mayCreate }) {
    if (!mayCreate) return {};
    let name = claimName;
    const steps = new IndependentSteps(look.observed.run);
    const named = await steps.all(async () => {
      name = await chooseClaim(look);
    });
    const applied = named.failed ? named : await steps.all(() => reconcileVolume(look, name));
    const { failed, finding } = applied;
    const given = { claimName: name };
    // An existing claim is enough for the learner, whatever its size.
    if (look.observed.volume && !named.failed) return { given, other: finding, error: steps.error };
    return { given, failed, refused: finding, error: steps.error };
  },
};

export const detachment: Part<DetachMemory> = {
  name: "detachment",
  isChild: true,
  reconcile: forceDetach,
};
