/** The pods of a run. */
import type { Kubectl } from "./kubectl.ts";

export type Labelled = {
  metadata: { name: string; namespace: string; uid: string; labels?: Record<string, string> };
  status?: { phase?: string };
};

export const podsOf = (kubectl: Kubectl, run: string, component: string) =>
  kubectl.items<Labelled>("pods", "--selector", `longrun.dev/run=${run},app.kubernetes.io/component=${component}`);
export const actorPods = (kubectl: Kubectl, run: string) => podsOf(kubectl, run, "actor");
