/**
 * Credentials for both ends of the channel, and the caller's identity.
 *
 * Both ends show a certificate of the run's own authority (`certificates.ts`); a connection without one is refused. Each call then checks
 * the role in the caller's certificate.
 */
import type { PeerCertificate } from "node:tls";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { type Address, formatAddress } from "./address.ts";
import { ROLES, type Role, type TlsFiles } from "./certificates.ts";
import { ChannelError } from "./errors.ts";
import { readTls, TlsFolder } from "./tls-folder.ts";

/**
 * Returns credentials of a server that refuses clients without a certificate of its authority. If the files change, new connections use the
 * new files.
 *
 * @param directory see writeTlsFiles
 * @param refreshSeconds how often the files are read. [10]
 */
export function serverCredentials(directory: string, refreshSeconds?: number): grpc.ServerCredentials {
  const folder = new TlsFolder(directory, refreshSeconds);
  return grpc.experimental.createCertificateProviderServerCredentials(folder, folder, true);
}

/** Returns credentials of a client that shows its certificate and checks the server's name. @param directory see writeTlsFiles; read now */
export function clientCredentials(directory: string): grpc.ChannelCredentials {
  const { authority, certificate, key } = readTls(directory);
  return grpc.ChannelCredentials.createSsl(authority, key, certificate);
}

/** Like `clientCredentials`, from memory. */
export function clientCredentialsOf(files: TlsFiles): grpc.ChannelCredentials {
  const [authority, key, certificate] = [files.authority, files.key, files.certificate].map((pem) => Buffer.from(pem));
  return grpc.ChannelCredentials.createSsl(authority, key, certificate);
}

/**
 * Makes a server listen. Without a host it takes connections over IPv6 and IPv4, or over IPv4 alone where the machine has no IPv6, as
 * `node:net` does. @returns its port @throws Error of the last try
 */
export async function bind(
  server: Pick<grpc.Server, "bindAsync">,
  { host, port }: Address,
  credentials: grpc.ServerCredentials,
): Promise<number> {
  const listen = (at: string): Promise<number> =>
    promisify(server.bindAsync).call(server, formatAddress({ host: at, port }), credentials) as Promise<number>;
  if (host !== undefined) return listen(host);
  return listen("::").catch(() => listen("0.0.0.0"));
}

/** The argument of a server's handler. */
interface IncomingCall {
  getAuthContext(): { sslPeerCertificate?: PeerCertificate } | null;
  getPeer(): string;
}

/** Returns the caller's role. @throws ChannelError `unauthenticated` if its certificate has none */
export function roleOf(call: IncomingCall): Role {
  const subject = call.getAuthContext()?.sslPeerCertificate?.subject;
  // Several OUs are an array; this authority issues no such certificate.
  const unit: unknown = subject?.OU;
  const role = ROLES.find((known) => known === unit);
  if (role === undefined) {
    throw new ChannelError(
      "unauthenticated",
      `the certificate of ${call.getPeer()} has no role: its OU must be one of ${ROLES.join(", ")}`,
    );
  }
  return role;
}

/** Returns the name in the caller's certificate (CN). @throws ChannelError `unauthenticated` if it has none, or several */
export function nameOf(call: IncomingCall): string {
  const name: unknown = call.getAuthContext()?.sslPeerCertificate?.subject?.CN;
  if (typeof name === "string" && name !== "") return name;
  throw new ChannelError("unauthenticated", `the certificate of ${call.getPeer()} has no name: its CN must be one`);
}

/** @throws ChannelError unless the caller's role is `wanted` */
export function requireRole(call: IncomingCall, wanted: Role): void {
  const role = roleOf(call);
  if (role !== wanted) {
    throw new ChannelError(
      "permissionDenied",
      `this call is for role ${wanted}; the caller's certificate says ${role}`,
    );
  }
}
