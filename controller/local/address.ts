/** Parses `HOST:PORT` of the command line. */
import { createServer } from "node:net";
import { ControllerError } from "../errors.ts";

export interface Address {
  host: string;
  /** 0: any free port. */
  port: number;
}

/** @param option name of the option, for error messages */
export function parseAddress(text: string, option: string): Address {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65535)
    throw new ControllerError(
      "input",
      `${option} ${text}: write HOST:PORT, for example 127.0.0.1:7000; port 0 is any free one`,
    );
  return { host: (match[1] ?? match[2])!, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @returns the address for processes of this machine to reach a server that listens at `host` */
export function dialledHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

/** Checks whether a server could listen there, before anything is created. @throws ControllerError `input` */
export async function checkFree(address: Address, option: string): Promise<void> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(address.port, address.host, resolve);
    });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "the port is in use; choose another one, or 0 for any free one" : message;
    throw new ControllerError("input", `${option} ${formatAddress(address)}: ${why}`, { cause });
  } finally {
    server.close();
  }
}
