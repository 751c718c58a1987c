/** The run's volume: its claim, and the detachment from a lost node. */
import { PERSISTENT_VOLUME_CLAIM } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { tryAll } from "../../steps.ts";
import { claimNames } from "../../writes/ownership.ts";
import { adoptVolume, chooseClaim, reconcileVolume } from "./claim.ts";
import { type DetachMemory, forceDetach } from "./force-detach.ts";

interface VolumeMemory {
  /** Name of the claim. */
  volume: string;
}

/** Knows the claim's name, also of a deleted claim. */
export const volumeName: Part<VolumeMemory, unknown, never, "claimName"> = {
  name: "volume-name",
  gives: ["claimName"],
  initial: (run) => ({ volume: claimNames(run)[0] }),
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
    const { run, volume } = look.observed;
    let adopted = false;
    const taken = await tryAll(run, async () => {
      adopted = await adoptVolume(look);
    });
    if (taken.failed) return taken;
    if (adopted) return { stop: true };
    let name = claimName;
    const named = await tryAll(run, async () => {
      name = await chooseClaim(look);
    });
    if (named.failed) return named;
    const { failed, refused, error } = await tryAll(run, () => reconcileVolume(look, name));
    // An existing claim is enough for the learner, whatever its size.
    return { given: { claimName: name }, error, ...(volume ? { other: refused } : { failed, refused }) };
  },
};

export const detachment: Part<DetachMemory> = {
  name: "detachment",
  isChild: true,
  reconcile: forceDetach,
};
