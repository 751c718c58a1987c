/**
 * The certificate of each actor: a Secret that its Job owns, so that Kubernetes collects it with the Job.
 *
 * The Job is made first, and its pod waits for the Secret: the kubelet tries the mount again until it is there. A controller
 * that ends between the two writes leaves a Job without a Secret, which is what the next look finds and mends.
 */
import { ensureActorCertificate, type SecretData } from "./certificates.ts";
import { type Pass, tell } from "./context.ts";
import { childMetadata, type Run, tlsSecret } from "./desired/names.ts";
import { SECRET, type Secret } from "./kube/resources.ts";
import { hasEnded } from "./lifecycle.ts";
import { isActive, type ObservedActor } from "./observe.ts";

/** Makes and renews the certificates of all actors that start or run. @throws BlockedError | ApiError */
export async function reconcileActorCertificates(pass: Pass): Promise<void> {
  const { observed, memory } = pass;
  const actors = hasEnded(observed) ? [] : observed.actors.filter(isActive);
  const names = new Set(actors.map(({ name }) => name));
  for (const name of memory.actorCertificates.keys()) if (!names.has(name)) memory.actorCertificates.delete(name);
  const { authority } = observed.secrets;
  // What reconcileCertificates has just written is seen in the next look.
  if (!authority || !memory.certificates) return;
  const done = await Promise.allSettled(actors.map((actor) => reconcileActorCertificate(pass, actor, authority)));
  const failed = done.find((it) => it.status === "rejected");
  if (failed) throw failed.reason;
}

async function reconcileActorCertificate(pass: Pass, actor: ObservedActor, authority: Secret): Promise<void> {
  const { observed, memory, nowMs, writes } = pass;
  const { name, secret } = actor;
  const versions = [authority, secret].map((it) => it?.metadata.resourceVersion).join(" ");
  const known = memory.actorCertificates.get(name);
  if (secret && known?.versions === versions && nowMs < known.renewAtMs) return;
  const { write, reason, renewAtMs, expireAtMs } = await ensureActorCertificate(
    (authority.data ?? {}) as SecretData,
    secret && ((secret.data ?? {}) as SecretData),
    { name, now: nowMs },
  );
  if (write === undefined) {
    memory.actorCertificates.set(name, { versions, renewAtMs, expireAtMs });
    return;
  }
  await writes.apply(SECRET, desiredActorSecret(observed.run, actor, write));
  if (secret && reason) tell(pass, "Normal", "CertificatesRenewed", reason, "Renew");
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
