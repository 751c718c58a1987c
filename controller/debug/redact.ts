/** Removes secrets from a support bundle. */
import type { KubeObject } from "../operator/kube/types.ts";

const HIDDEN = "[redacted]";

const SECRETS: readonly [pattern: RegExp, replacement: string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g, HIDDEN],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, HIDDEN], // a JSON web token
  [/\b(Bearer|Basic)\s+[\w.~+/=-]+/gi, `$1 ${HIDDEN}`],
  [/(\burl["']?\s*[:=]\s*["']?)[^\s"',}]+/gi, `$1${HIDDEN}`], // a webhook's URL, which may be a secret
  [/:\/\/[^/\s:@"]+:[^/\s@"]+@/g, `://${HIDDEN}@`], // https://user:password@host
  [/((?:password|passwd|secret|token|api[-_]?key|access[-_]?key)["']?\s*[:=]\s*["']?)[^\s"',}]+/gi, `$1${HIDDEN}`],
];

/** Replaces keys, tokens and passwords that can be recognized. */
export function redactText(text: string): string {
  return SECRETS.reduce((before, [pattern, replacement]) => before.replace(pattern, replacement), text);
}

/** Returns the object without values of environment variables, managedFields and last-applied-configuration. */
export function redactObject<T extends KubeObject>(object: T): T {
  const copy = JSON.parse(JSON.stringify(object), (key, value: unknown) =>
    key === "env" && Array.isArray(value) ? value.map(withoutValue) : value,
  ) as T;
  delete (copy.metadata as { managedFields?: unknown }).managedFields;
  delete copy.metadata.annotations?.["kubectl.kubernetes.io/last-applied-configuration"];
  return copy;
}

/** Keeps a reference to a value, but hides the value itself. */
const withoutValue = (entry: { value?: unknown }) => (entry.value === undefined ? entry : { ...entry, value: HIDDEN });
