/** Writes a child in its desired state. */
import { type Look, recordEvent } from "../context.ts";
import type { KubeObject, Resource } from "../kube/types.ts";

/** Applies the child. An event reports others' changes that this undoes. */
export async function applyChild(look: Look, resource: Resource, desired: KubeObject): Promise<void> {
  const outcome = await look.writes.apply(resource, desired);
  const name = `${resource.kind} ${desired.metadata.name}`;
  if (outcome.kind === "repaired")
    recordEvent(look, "Repaired", `${name} was changed, and the change is undone: ${outcome.difference}`);
  else if (outcome.kind !== "same") look.context.log.info({ run: look.key, ...outcome }, name);
}
