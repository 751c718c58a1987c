/** The pods of a run. */
import type { Kubectl } from "./kubectl.ts";

export type Labelled = {
  metadata: { name: string; namespace: string; uid: string; labels?: Record<string, string> };
  status?: { phase?: string };
};

export const podsOf = (kubectl: Kubectl, run: string, component: string) =>
  kubectl.items<Labelled>("pods", "--selector", `longrun.dev/run=${run},app.kubernetes.io/component=${component}`);
export const actorPods = (kubectl: Kubectl, run: string) => podsOf(kubectl, run, "actor");

/** Waits until `holds` returns a value for the run's pods. @param component such as `actor`; undefined: every pod */
export function untilPods<T>(
  kubectl: Kubectl,
  run: string,
  component: string | undefined,
  what: string,
  timeoutSeconds: number,
  holds: (pods: Labelled[]) => T | undefined | false,
): Promise<T> {
  const labels = { "longrun.dev/run": run, ...(component && { "app.kubernetes.io/component": component }) };
  return kubectl.untilPods<Labelled, T>(labels, what, timeoutSeconds, holds);
}

/** Waits until the run has finished an iteration. @returns the number of finished iterations */
export function reached(kubectl: Kubectl, run: string, iteration: number): Promise<number> {
  return kubectl.untilRun(run, `iteration ${iteration}`, 300, ({ status }) => {
    return (status?.iteration ?? 0) >= iteration && status!.iteration;
  });
}
