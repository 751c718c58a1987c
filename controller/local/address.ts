/** Addresses of the command line. */
import { createServer } from "node:net";
import { ADDRESS_FORM, type Address, formatAddress, readAddress } from "../../proto/address.ts";
import { ControllerError } from "../errors.ts";

/** @param option name of the option, for error messages */
export function parseAddress(text: string, option: string): Address {
  const address = readAddress(text);
  if (address === undefined) throw new ControllerError("input", `${option} ${text}: ${ADDRESS_FORM}`);
  return address;
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
