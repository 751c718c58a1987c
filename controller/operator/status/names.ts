/** Failures to resolve a name, which a NetworkPolicy causes that lets pods ask no DNS server. */
import type { Finding } from "./conditions.ts";

/**
 * What Node.js and gRPC say if no DNS server answers. A server that knows no such name answers ENOTFOUND: then an address of the spec is wrong,
 * unless the name is a Service's.
 */
const UNRESOLVED = /EAI_AGAIN|Temporary failure in name resolution|Name resolution failed|ENOTFOUND \S+\.svc\b/;

const REMEDY =
  "its names do not resolve: check that the cluster's DNS answers, and that NetworkPolicies let the pod ask it (chart: networkPolicy.dns names the DNS servers)";

export function isUnresolved(text: string | undefined): boolean {
  return UNRESOLVED.test(text ?? "");
}

/** Returns the finding, with the reason NamesNotResolved and the remedy if the text, by default its message, is about a name that does not resolve. */
export function withNames(finding: Finding, text: string | undefined = finding.message): Finding {
  if (!isUnresolved(text)) return finding;
  return { reason: "NamesNotResolved", message: `${finding.message}; ${REMEDY}` };
}
