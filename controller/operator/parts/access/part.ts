/** Objects around the pods: service accounts, network policies, the learner's Service and its disruption budget. */
import { desiredNetworkPolicies, desiredServiceAccounts } from "../../desired/access.ts";
import { NETWORK_POLICY, POD_DISRUPTION_BUDGET, SERVICE, SERVICE_ACCOUNT } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { tryAll } from "../../steps.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { desiredDisruptionBudget, desiredService } from "../learner/desired.ts";

export const access: Part<object, unknown, "mayCreate"> = {
  name: "access",
  needs: ["mayCreate"],
  isChild: true,
  kinds: () => [SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, POD_DISRUPTION_BUDGET],
  async reconcile(look, _, { mayCreate }) {
    if (!mayCreate) return {};
    const { run } = look.observed;
    const needed = await tryAll(
      run,
      ...desiredServiceAccounts(run).map((it) => () => applyChild(look, SERVICE_ACCOUNT, it)),
      ...desiredNetworkPolicies(run, look.context.settings).map((it) => () => applyChild(look, NETWORK_POLICY, it)),
      () => applyChild(look, SERVICE, desiredService(run)),
    );
    // The learner does without its budget.
    const other = await tryAll(run, () => applyChild(look, POD_DISRUPTION_BUDGET, desiredDisruptionBudget(run)));
    return { ...needed, other: other.refused, error: needed.error ?? other.error };
  },
};
