/** Writes a Secret with a certificate that a run's authority signs. */
import { type Look, recordEvent } from "../../context.ts";
import { SECRET, type Secret } from "../../kube/resources.ts";
import { type CertificateDates, ensureSigned, type SecretData } from "./certificates.ts";

/**
 * Creates or renews it. @returns the certificate's dates; undefined if the Secret was written, which the next reconcile sees
 *
 * @param known the last result
 * @throws BlockedError | ApiError
 */
export async function reconcileSigned(
  look: Look,
  known: CertificateDates | undefined,
  {
    authority,
    secret,
    metadata,
    ...request
  }: {
    authority: Secret;
    secret: Secret | undefined;
    metadata: Secret["metadata"];
  } & Pick<Parameters<typeof ensureSigned>[2], "role" | "name" | "hosts">,
): Promise<CertificateDates | undefined> {
  const versions = [authority, secret].map((it) => it?.metadata.resourceVersion).join(" ");
  if (secret && known?.versions === versions && look.nowMs < known.renewAtMs) return known;
  const [signing, present] = [authority, secret].map((it) => it && ((it.data ?? {}) as SecretData));
  const now = look.nowMs;
  const { write, reason, renewAtMs, expireAtMs } = await ensureSigned(signing!, present, { ...request, now });
  if (write === undefined) return { versions, renewAtMs, expireAtMs };
  await look.writes.apply(SECRET, {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    type: "Opaque",
    data: write,
  } as Secret);
  if (secret && reason) recordEvent(look, "CertificatesRenewed", reason);
  return undefined;
}
