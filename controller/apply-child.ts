/** The write that makes a child as it should be. */
import { type Look, tell } from "./context.ts";
import type { KubeObject, Resource } from "./kube/types.ts";

/** What somebody did to a child is told, because it is undone. */
export async function applyChild(look: Look, resource: Resource, desired: KubeObject): Promise<void> {
  const outcome = await look.writes.apply(resource, desired);
  const name = `${resource.kind} ${desired.metadata.name}`;
  if (outcome.kind === "repaired")
    tell(look, "Normal", "Repaired", `${name} was changed and is as it was: ${outcome.difference}`, "Repair");
  else if (outcome.kind !== "same") look.context.log.info({ run: look.key, ...outcome }, name);
}
