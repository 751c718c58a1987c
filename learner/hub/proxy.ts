/** The proxies that the environment names, for the requests of this process. */
import http from "node:http";
import { TransferError } from "./errors.ts";

const VARIABLES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];

/** Sends this process' requests through the proxies of its environment. @throws TransferError for a proxy that is no address */
export function useProxies(env: NodeJS.ProcessEnv): void {
  for (const name of VARIABLES) {
    const value = env[name];
    if (!value || (URL.canParse(value) && /^(https?|socks5?):$/.test(new URL(value).protocol))) continue;
    const problem = `${name} is ${withoutPassword(value)}, which is no address of a proxy`;
    throw new TransferError("input", `${problem}; give one such as http://proxy.example.com:3128, or unset it`);
  }
  http.setGlobalProxyFromEnv(env);
}

/** Returns the proxy that such a request goes through, as `setGlobalProxyFromEnv` reads it, without its password. */
export function proxyOf(protocol: string, host: string, env: NodeJS.ProcessEnv) {
  const name = protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const variable = [name.toLowerCase(), name].find((each) => env[each]);
  if (variable === undefined) return undefined;
  const without = (env.no_proxy || env.NO_PROXY || "").split(/[\s,]+/).filter((each) => each !== "");
  const [bare = host] = host.split(":");
  const skips = without.some((each) => each === "*" || each === host || bare.endsWith(each.replace(/^\*/, "")));
  if (skips) return undefined;
  return { variable, address: withoutPassword(env[variable]!) };
}

const withoutPassword = (address: string): string => address.replace(/^([a-z0-9]+:\/\/)?.*@/i, "$1");
