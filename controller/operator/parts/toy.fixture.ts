/** A toy child, as README.md describes one: a Lease that counts the reconciles. */
import { childMetadata } from "../desired/names.ts";
import { LEASE } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import type { Part } from "../part.ts";
import { type ConditionType, condition } from "../status/conditions.ts";
import { applyChild } from "../writes/apply-child.ts";
import { BlockedError } from "../writes/refusals.ts";

interface ToyMemory {
  reconciles: number;
}

/** @param isRefused whether the API server refuses the Lease */
export const toyOf = (isRefused = false): Part<ToyMemory, { next: number }, "mayCreate"> => ({
  name: "toy",
  needs: ["mayCreate"],
  isChild: true,
  kinds: () => [LEASE],
  initial: () => ({ reconciles: 0 }),
  observe: ({ memory }) => ({ facts: { next: memory.reconciles + 1 } }),
  async reconcile(look, { next }, { mayCreate }) {
    if (!mayCreate) return {};
    if (isRefused) throw new BlockedError("Forbidden", "no toys here");
    const metadata = childMetadata(look.observed.run, "toy", "run");
    const spec = { leaseTransitions: next };
    await applyChild(look, LEASE, {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata,
      spec,
    } as KubeObject);
    return { remember: { reconciles: next }, againSeconds: 7 };
  },
  report: (_, { next }, __, { refused }) => ({
    conditions: [condition("Toy" as ConditionType, !refused, refused ?? { reason: "AsDesired", message: `${next}` })],
  }),
});
