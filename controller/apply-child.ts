/** The write that makes a child as it should be. */
import { type Pass, tell } from "./context.ts";
import type { KubeObject, Resource } from "./kube/types.ts";

/** What somebody did to a child is told, because it is undone. */
export async function applyChild(pass: Pass, resource: Resource, desired: KubeObject): Promise<void> {
  const outcome = await pass.writes.apply(resource, desired);
  const name = `${resource.kind} ${desired.metadata.name}`;
  if (outcome.kind === "repaired")
    tell(pass, "Normal", "Repaired", `${name} was changed and is as it was: ${outcome.difference}`, "Repair");
  else if (outcome.kind !== "same") pass.context.log.info({ run: pass.key, ...outcome }, name);
}
