/**
 * The certificate of each actor: a Secret that its Job owns, so that Kubernetes deletes it with the Job.
 *
 * The Job is created first. Its pod waits for the Secret, because the kubelet repeats the mount until the Secret exists. A controller that
 * ends between the two writes leaves a Job without a Secret; the next reconcile creates the Secret.
 */

import { type Look, tell } from "../../context.ts";
import { childMetadata, type Run, tlsSecret } from "../../desired/names.ts";
import { SECRET, type Secret } from "../../kube/resources.ts";
import { hasEnded } from "../../lifecycle.ts";
import type { CertificateDates } from "../../memory.ts";
import { isActive, type ObservedActor } from "../../observe.ts";
import type { StepResult } from "../../steps.ts";
import { ensureActorCertificate, type SecretData } from "./certificates.ts";

/** Creates and renews the certificates of all actors that start or run. `error`: BlockedError | ApiError */
export async function reconcileActorCertificates(look: Look): Promise<StepResult> {
  const { observed, memory } = look;
  const actors = hasEnded(observed) ? [] : observed.actors.filter(isActive);
  const names = new Set(actors.map(({ name }) => name));
  const known = [...memory.actorCertificates].filter(([name]) => names.has(name));
  const { authority } = observed.secrets;
  // The next reconcile sees what reconcileCertificates has just written.
  if (!authority || !memory.certificates) return { remember: { actorCertificates: new Map(known) } };
  const done = await Promise.allSettled(actors.map((actor) => reconcileActorCertificate(look, actor, authority)));
  const found = done.flatMap((it) => (it.status === "fulfilled" ? it.value : []));
  const failed = done.find((it) => it.status === "rejected");
  return { remember: { actorCertificates: new Map([...known, ...found]) }, error: failed?.reason };
}

/** Returns new knowledge about the actor's certificate, if the certificate is right. */
async function reconcileActorCertificate(
  look: Look,
  actor: ObservedActor,
  authority: Secret,
): Promise<[string, CertificateDates][]> {
  const { observed, memory, nowMs, writes } = look;
  const { name, secret } = actor;
  const versions = [authority, secret].map((it) => it?.metadata.resourceVersion).join(" ");
  const known = memory.actorCertificates.get(name);
  if (secret && known?.versions === versions && nowMs < known.renewAtMs) return [];
  const { write, reason, renewAtMs, expireAtMs } = await ensureActorCertificate(
    (authority.data ?? {}) as SecretData,
    secret && ((secret.data ?? {}) as SecretData),
    { name, now: nowMs },
  );
  if (write === undefined) return [[name, { versions, renewAtMs, expireAtMs }]];
  await writes.apply(SECRET, desiredActorSecret(observed.run, actor, write));
  if (secret && reason) tell(look, "Normal", "CertificatesRenewed", reason, "Renew");
  return [];
}

function desiredActorSecret(run: Run, { name, job }: ObservedActor, data: SecretData): Secret {
  const { labels, namespace } = childMetadata(run, "", "actor");
  const { apiVersion, kind } = job;
  const owner = { apiVersion: apiVersion ?? "batch/v1", kind: kind ?? "Job", name, uid: job.metadata.uid! };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: tlsSecret(name), namespace, labels, ownerReferences: [owner] },
    type: "Opaque",
    data,
  };
}
