/** Requests of the Kubernetes API, as the proxy of `api-proxy.ts` sees them. */
type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** The parts of an object that a fault examines. */
export interface ApiObject {
  kind?: string;
  apiVersion?: string;
  metadata?: { name?: string; namespace?: string; uid?: string; resourceVersion?: string };
  items?: ApiObject[];
  /** For a Status. */
  code?: number;
  [field: string]: unknown;
}

export interface ApiRequest {
  verb: Verb;
  /** `group/plural`, or only the plural for the core group; "" for paths such as /readyz. */
  resource: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  /** A server-side dry run does not count as a write. */
  isWrite: boolean;
  atMs: number;
  path: string;
  /** The object sent by a write. */
  body?: ApiObject;
  /** Status of the API server; undefined while it has not answered, or was not asked. */
  code?: number;
  /** The answer to a write. */
  answer?: ApiObject;
}

/** Parses https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris */
export function parseRequest(method: string, path: string, sent: Buffer): ApiRequest {
  const { pathname, searchParams } = new URL(path, "https://api");
  const parts = pathname
    .split("/")
    .filter(Boolean)
    .map((part) => decodeURIComponent(part));
  const group = parts[0] === "apis" ? parts[1] : "";
  const rest = parts.slice(parts[0] === "apis" ? 3 : 2);
  const namespaced = rest[0] === "namespaces" && rest.length > 2 && rest[2] !== "status" && rest[2] !== "finalize";
  const [plural, name, subresource] = namespaced ? rest.slice(2) : rest;
  const isResource = (parts[0] === "api" || parts[0] === "apis") && plural !== undefined;
  const isWatch = ["true", "1"].includes(searchParams.get("watch") ?? "");
  const verbs: Record<string, Verb> = {
    GET: isWatch ? "watch" : name || !isResource ? "get" : "list",
    POST: "create",
    PUT: "update",
    PATCH: "patch",
    DELETE: name ? "delete" : "deletecollection",
  };
  const verb = verbs[method] ?? "get";
  const isWrite = !["get", "list", "watch"].includes(verb) && !searchParams.has("dryRun");
  const body = isWrite && sent.length > 0 ? parseJson(sent) : undefined;
  return {
    verb,
    resource: isResource ? (group ? `${group}/${plural}` : plural!) : "",
    subresource,
    namespace: namespaced ? rest[1] : undefined,
    name: name ?? (isWrite ? body?.metadata?.name : undefined),
    isWrite,
    atMs: Date.now(),
    path,
    body,
  };
}

/** Returns undefined for text that is no JSON, such as YAML of `kubectl apply --server-side` (which tests do not examine). */
export function parseJson(data: Buffer): ApiObject | undefined {
  try {
    return JSON.parse(data.toString());
  } catch {
    return undefined;
  }
}
