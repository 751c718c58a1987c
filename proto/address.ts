/** Addresses to listen on, as options of all programs give them. */

export interface Address {
  /** Undefined: every IPv6 and IPv4 address of the machine. */
  host?: string;
  /** 0: any free one. */
  port: number;
}

/** For error messages. */
export const ADDRESS_FORM =
  "write HOST:PORT, for example 127.0.0.1:7000, or :PORT for every address of the machine; port 0 is any free one";

/** Reads `HOST:PORT`, `[IPv6]:PORT` or `:PORT`. @returns undefined if it is none of these */
export function readAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))?:(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535) return undefined;
  const host = match[1] ?? match[2];
  return { port, ...(host !== undefined && { host }) };
}

export function formatAddress({ host = "", port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @returns the address for processes of this machine to reach a server that listens at `host` */
export function dialledHost(host: string | undefined): string {
  if (host === undefined) return "localhost";
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
