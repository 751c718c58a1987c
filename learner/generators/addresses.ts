/** Finds a run's generators: the learner's list of URLs, and the addresses behind each name. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { ManifestError } from "../../crds/trainingrun.ts";

export interface Address {
  /** URL with an IP address as its host */
  readonly url: URL;
  /** The name that the certificate must have; undefined: the IP address. */
  readonly servername: string | undefined;
}

/** @throws ManifestError, one line */
export function parseUrls(text: string): URL[] {
  return text
    .split(",")
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const url = URL.parse(part.trim());
      if (url?.protocol === "https:" && url.pathname === "/" && url.search === "") return url;
      throw new ManifestError([`--generators: ${part.trim()} is no URL of a generator; write https://HOST:PORT`]);
    });
}

/**
 * Returns all addresses of a URL's host name, which may name a headless Service. If a name has addresses of both families, only the IPv4
 * addresses count, because the IPv6 addresses belong to the same machines.
 */
export async function addressesOf(url: URL): Promise<Address[]> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host)) return [{ url, servername: undefined }];
  const found = await lookup(host, { all: true });
  const family = found.some((each) => each.family === 4) ? 4 : 6;
  return found
    .filter((each) => each.family === family)
    .map(({ address }) => {
      const own = new URL(url);
      own.hostname = family === 6 ? `[${address}]` : address;
      return { url: own, servername: host };
    });
}

export interface Resolved {
  /** {host and port of an address: the address} */
  found: Map<string, Address>;
  /** {host and port of a URL: why no DNS server answers for its name} */
  unresolved: Map<string, string>;
  /** {host and port of a URL: why it has no address}, for example a headless Service without pods */
  empty: Map<string, string>;
}

/** Looks up all URLs at once: behind a NetworkPolicy without DNS each look-up takes seconds. */
export async function resolveAll(urls: readonly URL[], lookUp: typeof addressesOf = addressesOf): Promise<Resolved> {
  const resolved: Resolved = { found: new Map(), unresolved: new Map(), empty: new Map() };
  const look = async (url: URL) => {
    try {
      for (const address of await lookUp(url)) resolved.found.set(address.url.host, address);
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException;
      if (code === "EAI_AGAIN") resolved.unresolved.set(url.host, `its name does not resolve: ${message}`);
      else resolved.empty.set(url.host, message);
    }
  };
  await Promise.all(urls.map(look));
  return resolved;
}
