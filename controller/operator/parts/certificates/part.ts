/** The certificates of the run's authority and its learner. actors/ and generators/ have their own. */
import { type Look, recordEvent } from "../../context.ts";
import { childMetadata, learnerHosts, type Run } from "../../desired/names.ts";
import { SECRET, type Secret } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { tryAll } from "../../steps.ts";
import { hasEnded, hasLearner } from "../lifecycle/lifecycle.ts";
import { type CertificateDates, type CertificateSecrets, ensureCertificates, type SecretData } from "./certificates.ts";

interface CertificatesMemory {
  dates?: CertificateDates | undefined;
}

export const certificates: Part<CertificatesMemory, unknown, "mayCreate", "certified"> = {
  name: "certificates",
  needs: ["mayCreate"],
  gives: ["certified"],
  isChild: true,
  kinds: () => [SECRET],
  async reconcile(look, _, { mayCreate }) {
    let { dates } = look.memory;
    const { observed } = look;
    const { authority, learner } = observed.secrets;
    // A learner that its TrainingRuntime refuses trains on, perhaps for longer than its certificate is valid.
    const renews = observed.refusal !== undefined && hasLearner(observed) && authority && learner;
    const tried = await tryAll(look.observed.run, async () => {
      if (mayCreate || renews) dates = await reconcileCertificates(look, dates);
    });
    return { ...tried, remember: { dates }, given: { certified: dates !== undefined } };
  },
  report: ({ memory: { dates } }) => ({ certificates: dates ? [dates] : [] }),
};

/** Creates and renews the certificates of the authority and of the learner. @returns their dates, if they are right */
async function reconcileCertificates(
  look: Look,
  known: CertificateDates | undefined,
): Promise<CertificateDates | undefined> {
  const { observed, nowMs } = look;
  const { run, secrets } = observed;
  if (hasEnded(observed)) return known;
  const versions = Object.values(secrets)
    .map(({ metadata }) => metadata.resourceVersion)
    .join(" ");
  const dials = run.spec.generation !== undefined;
  if (
    known?.versions === versions &&
    known.dials === dials &&
    nowMs < known.renewAtMs &&
    Object.keys(secrets).length === 2
  )
    return known;
  const data: CertificateSecrets = {};
  for (const [part, secret] of Object.entries(secrets))
    data[part as keyof CertificateSecrets] = (secret.data ?? {}) as SecretData;
  const { write, reasons, renewAtMs, expireAtMs } = await ensureCertificates(data, {
    name: run.metadata.name,
    hosts: learnerHosts(run),
    dials,
    now: nowMs,
  });
  for (const [part, content] of Object.entries(write)) {
    const secret = desiredSecret(run, part as keyof CertificateSecrets, content as SecretData);
    const { kind } = await look.writes.apply(SECRET, secret, { onlyNew: true });
    // Its answer was lost. Another authority, and what it signs, would not fit what is there.
    if (kind === "found") return undefined;
  }
  if (reasons.length > 0 && secrets.authority) recordEvent(look, "CertificatesRenewed", reasons.join("; "));
  return reasons.length > 0 ? undefined : { versions, dials, renewAtMs, expireAtMs };
}

function desiredSecret(run: Run, part: keyof CertificateSecrets, data: SecretData): Secret {
  const component = part === "authority" ? "run" : part;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(run, part === "authority" ? "ca" : `${part}-tls`, component),
    type: "Opaque",
    data,
  };
}
