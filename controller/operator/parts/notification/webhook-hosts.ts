/**
 * The hosts to which the controller posts webhooks. The author of a TrainingRun chooses the address, but the controller can reach more than
 * the author. So the cluster's administrator lists the allowed hosts, and an address inside the cluster or the nodes' network is only
 * allowed for a host that is listed by its exact name.
 */
import { lookup as resolve } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { ControllerError } from "../../../errors.ts";

/** `hooks.example.com`, an IP address, or `*.example.com` for all hosts below it. */
export type HostPattern = string;

const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Loopback, link-local, private and other addresses outside the public internet: RFC 6890. */
const INSIDE = new BlockList();
for (const [address, prefix] of [
  ...([
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
  ] as const),
  ...([
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["224.0.0.0", 3],
  ] as const),
] as const)
  INSIDE.addSubnet(address, prefix, "ipv4");
// 64:ff9b and 2002 contain an IPv4 address.
for (const [address, prefix] of [
  ...([
    ["::", 96],
    ["64:ff9b::", 32],
    ["100::", 64],
    ["2001::", 23],
    ["2002::", 16],
    ["fc00::", 7],
    ["fe80::", 10],
  ] as const),
  ...([
    ["fec0::", 10],
    ["ff00::", 8],
  ] as const),
] as const)
  INSIDE.addSubnet(address, prefix, "ipv6");

/** @throws ControllerError `input` */
export function parseHosts(values: readonly string[], option: string): HostPattern[] {
  const hosts = values.flatMap((value) => value.split(",")).map((host) => host.trim().toLowerCase());
  for (const host of hosts)
    if (!HOST.test(host) && isIP(host) === 0)
      throw new ControllerError(
        "input",
        `${option} has ${host || "an empty name"}, must be a host, *.DOMAIN or an IP address`,
      );
  return hosts;
}

/**
 * Returns how the controller may connect to a host: not at all, at internet addresses only, or at any address.
 *
 * @param host as in a URL, an IPv6 address without brackets
 */
export function allowanceOf(host: string, hosts: readonly HostPattern[]): "none" | "internet" | "any" {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (hosts.includes(name)) return "any";
  if (isIP(name) !== 0) return "none";
  return hosts.some((it) => it.startsWith("*.") && name.endsWith(it.slice(1))) ? "internet" : "none";
}

export function isInside(address: string): boolean {
  return INSIDE.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** The name resolves to an address inside the cluster or its network. */
export class InsideError extends Error {
  override readonly name = "InsideError";
}

/**
 * Resolves `host` for the connection itself, so that the checked address is the one that is connected to. Other names, such as a proxy's,
 * are resolved as usual.
 */
export function internetLookup(host: string): LookupFunction {
  return (name, options, done) =>
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error) return done(error, []);
      if (name === host && found.some(({ address }) => isInside(address))) return done(new InsideError(), []);
      if (options.all) done(null, found);
      else done(null, found[0]!.address, found[0]!.family);
    });
}
