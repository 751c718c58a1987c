/** The first step of a reconcile: whose run it is. */
import type { Context, Look } from "../context.ts";
import type { Run } from "../desired/names.ts";
import type { ReconcileResult } from "../kube/types.ts";
import { FINALIZER } from "../parts/lifecycle/deletion.ts";
import { eventOf } from "../status/conditions.ts";
import { leftAlone } from "./claims.ts";

/** Takes a run, unless it is another controller's. @returns undefined: the run is this controller's */
export async function claim({ key, stored, context, writes }: Look): Promise<ReconcileResult | undefined> {
  const { claims, events } = context;
  if (!claims.serves(stored)) {
    leave(key, stored, context);
    await claims.release(stored, writes, FINALIZER);
    return {};
  }
  const claimed = await claims.take(stored, writes);
  if (claimed === "ours") return undefined;
  if (claimed === "written") return {};
  leave(key, stored, context);
  if (claimed.first) events.record(stored, { ...eventOf("OtherController"), note: leftAlone(claimed.leave) });
  return { requeueAfterSeconds: claimed.againSeconds };
}

/** Forgets a run that another controller reconciles: that one measures it and tells of its end. */
function leave(key: string, { metadata: { namespace, name } }: Run, { links, memories, metrics }: Context): void {
  links.drop(key);
  memories.forget(key);
  metrics.forget({ namespace, run: name });
}
