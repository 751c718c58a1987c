/**
 * The certificate of each actor: a Secret that its Job owns, so that Kubernetes deletes it with the Job.
 *
 * The Job is created first. Its pod waits for the Secret, because the kubelet repeats the mount until the Secret exists. A controller that
 * ends between the two writes leaves a Job without a Secret; the next reconcile creates the Secret.
 */

import type { Look } from "../../context.ts";
import { childMetadata, type Run, tlsSecret } from "../../desired/names.ts";
import type { Job, Secret } from "../../kube/resources.ts";
import { isActive } from "../../observe.ts";
import type { StepResult } from "../../steps.ts";
import { hasEnded } from "../lifecycle/lifecycle.ts";
import type { CertificateDates } from "./certificates.ts";
import { reconcileSigned } from "./signed.ts";

export interface ActorCertificates {
  /** Dates of the certificates that were found right, by actor; `versions` also has the authority's. */
  certificates: ReadonlyMap<string, CertificateDates>;
}

/** Creates and renews the certificates of all actors that start or run. `error`: BlockedError | ApiError */
export async function reconcileActorCertificates(
  look: Look<ActorCertificates>,
  certified: boolean,
): Promise<StepResult<ActorCertificates>> {
  const { observed, memory } = look;
  const actors = hasEnded(observed) ? [] : observed.actors.filter(isActive);
  const names = new Set(actors.map(({ name }) => name));
  const certificates = new Map([...memory.certificates].filter(([name]) => names.has(name)));
  const { authority } = observed.secrets;
  // The next reconcile sees what reconcileCertificates has just written.
  if (!authority || !certified) return { remember: { certificates } };
  const done = await Promise.allSettled(
    actors.map(async ({ name, job, secret }) => {
      const metadata = metadataOf(observed.run, name, job);
      const request = { authority, secret, metadata, role: "actor" as const, name, hosts: [] };
      const dates = await reconcileSigned(look, certificates.get(name), request);
      if (dates) certificates.set(name, dates);
      else certificates.delete(name);
    }),
  );
  const failed = done.find((it) => it.status === "rejected");
  return { remember: { certificates }, error: failed?.reason };
}

function metadataOf(
  run: Run,
  name: string,
  { apiVersion = "batch/v1", kind = "Job", metadata }: Job,
): Secret["metadata"] {
  return {
    ...childMetadata(run, "", "actor"),
    name: tlsSecret(name),
    ownerReferences: [{ apiVersion, kind, name, uid: metadata.uid! }],
  };
}
