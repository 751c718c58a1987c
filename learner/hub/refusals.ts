/** Explains error answers and failed connections in one line with the remedy. */
import { TransferError } from "./errors.ts";
import { proxyOf } from "./proxy.ts";

/** The requested model or file, for messages. */
export interface Asked {
  /** Without a slash at the end. */
  endpoint: string;
  repo: string;
  revision: string;
  hasToken: boolean;
}

/** Returns the error of an answer with a status of 400 or more. The hub gives its reason in `X-Error-Code`. */
export function refusalOf(response: Response, url: string, asked: Asked): TransferError {
  const { endpoint, repo, revision, hasToken } = asked;
  const { status, headers } = response;
  const host = new URL(response.url || url).origin;
  const code = headers.get("x-error-code") ?? "";
  const said = headers.get("x-error-message")?.slice(0, 200);
  const saying = said ? ` (${said})` : "";
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const asksToWait = retryAfterSeconds(headers);
    const what = status === 429 ? `${host} answers 429, too many requests` : `${host} answers ${status}${saying}`;
    const remedy = status === 429 && !hasToken ? "; with a token in HF_TOKEN it allows more" : "";
    return new TransferError("network", what + remedy, { again: { afterSeconds: asksToWait } });
  }
  // Signed addresses of the hub's storage expire; the next try asks the hub for a new one.
  if (host !== new URL(endpoint).origin)
    return new TransferError(
      "network",
      `${host}, where ${endpoint} keeps the files, answers ${status}${saying}; allow this host where a firewall or proxy forbids it`,
      { again: {} },
    );
  if (code === "GatedRepo") {
    const page = `accept its licence at ${endpoint}/${repo}`;
    const token = hasToken
      ? "with the account of HF_TOKEN, which has no access yet"
      : `and set HF_TOKEN to a token of that account (${endpoint}/settings/tokens)`;
    return new TransferError("access", `${repo} is gated: ${page} ${token}`);
  }
  if (code === "RevisionNotFound")
    return new TransferError(
      "input",
      `${repo} has no revision ${revision}; give a branch, tag or commit of ${endpoint}/${repo}/commits/main`,
    );
  if (code === "EntryNotFound")
    return new TransferError("input", `${endpoint} has no ${new URL(url).pathname}, although it lists the file`);
  if (status === 401 && hasToken && code !== "RepoNotFound")
    return new TransferError(
      "access",
      `${endpoint} refuses the token in HF_TOKEN${saying}; make a new one at ${endpoint}/settings/tokens`,
    );
  // Without a token the hub does not reveal whether a private repository exists.
  if (status === 401 || status === 404) {
    const remedy = hasToken
      ? "that the token in HF_TOKEN may read; check the name"
      : `that is public; check the name, or set HF_TOKEN (${endpoint}/settings/tokens) for a private one`;
    return new TransferError("input", `${endpoint} has no model ${repo} ${remedy}`);
  }
  if (status === 403)
    return new TransferError(
      "access",
      `${endpoint} forbids to read ${repo}${saying}; give HF_TOKEN the right to read it`,
    );
  return new TransferError("network", `${endpoint} answers ${status}${saying} to ${new URL(url).pathname}`);
}

/** Seconds that a server asks to wait: `Retry-After`, a number or a date, or `t` of the hub's own `RateLimit`. */
export function retryAfterSeconds(headers: Headers, now = Date.now()): number | undefined {
  const text = headers.get("retry-after") ?? /(?:^|;)\s*t=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1];
  if (text === undefined) return undefined;
  const seconds = /^\d+$/.test(text.trim()) ? Number(text) : (Date.parse(text) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

/** Matches the messages of `fetch` and `http.Agent` when a proxy refuses a tunnel. */
const TUNNEL = /^(?:Proxy response \(|Failed to establish tunnel .* HTTP\/1\.\d )(\d{3})\b/;
const BROKEN = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);
const UNTRUSTED = /CERT|SELF_SIGNED|ISSUER|LEAF_SIGNATURE|ALTNAME/;

/**
 * Returns the error of a request that got no answer, or whose answer broke off.
 *
 * @param elsewhere the setting that names another server
 */
export function failureOf(
  cause: unknown,
  url: string,
  env: NodeJS.ProcessEnv,
  elsewhere = "HF_ENDPOINT for a mirror",
): TransferError {
  if (cause instanceof TransferError) return cause;
  const { host, protocol } = new URL(url);
  const reason = deepest(cause);
  const code = String(reason.code ?? "");
  const detail = reason.message || code || "no answer";
  const proxy = proxyOf(protocol, host, env);
  if (UNTRUSTED.test(code))
    return new TransferError(
      "network",
      `the certificate of ${host} is not trusted (${detail}); where a proxy or mirror has an authority of its own, name its file in NODE_EXTRA_CA_CERTS, and in a cluster its ConfigMap in spec.caBundle`,
      { cause },
    );
  const refusal = TUNNEL.exec(detail)?.[1];
  if (proxy && refusal?.startsWith("4")) {
    const problem =
      refusal === "407"
        ? "wants a name and password; write it as http://NAME:PASSWORD@HOST:PORT"
        : `refuses to connect to ${host} (${refusal}); allow the host there, or add it to NO_PROXY if it can be reached without the proxy`;
    return new TransferError("network", `the proxy ${proxy.address} (${proxy.variable}) ${problem}`, { cause });
  }
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return new TransferError(
      "input",
      `${host} does not answer with TLS; correct the port, or write http:// in the address if the server has no TLS`,
      { cause },
    );
  const problem = BROKEN.has(code) ? `the connection to ${host} broke off` : `cannot reach ${host}`;
  const where = proxy
    ? `${problem} through the proxy ${proxy.address} (${proxy.variable}): ${detail}; check the proxy`
    : `${problem}: ${detail}; check the network, or set HTTPS_PROXY for a proxy, ${elsewhere}`;
  return new TransferError("network", where, { cause, again: {} });
}

function deepest(error: unknown): { message?: string; code?: unknown } {
  let reason = error as Error & { code?: unknown; errors?: unknown[] };
  for (let depth = 0; depth < 5; depth++) {
    const next = reason.cause ?? (reason.message === "" ? reason.errors?.[0] : undefined);
    if (typeof next !== "object" || next === null) break;
    reason = next as typeof reason;
  }
  return reason;
}
