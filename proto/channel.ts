/**
 * Credentials of both ends of the channel, and who is calling.
 *
 * Both ends show a certificate of the run's own authority (`certificates.ts`); nobody else gets as far as a call. What
 * a caller may do is decided per call by its certificate's role.
 */
import type { PeerCertificate } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { ROLES, type Role, type TlsFiles } from "./certificates.ts";
import { ChannelError } from "./errors.ts";
import { readTls, TlsFolder } from "./tls-folder.ts";

/**
 * Of a server that refuses whoever has no certificate of the same authority. Files that change are used for the
 * connections that are made from then on.
 *
 * @param directory see writeTlsFiles
 * @param refreshSeconds how often the files are looked at. [10]
 */
export function serverCredentials(directory: string, refreshSeconds?: number): grpc.ServerCredentials {
  const folder = new TlsFolder(directory, refreshSeconds);
  return grpc.experimental.createCertificateProviderServerCredentials(folder, folder, true);
}

/** Of a client that shows its certificate and checks the server's name. @param directory see writeTlsFiles; read now */
export function clientCredentials(directory: string): grpc.ChannelCredentials {
  const { authority, certificate, key } = readTls(directory);
  return grpc.ChannelCredentials.createSsl(authority, key, certificate);
}

/** The same from memory. */
export function clientCredentialsOf(files: TlsFiles): grpc.ChannelCredentials {
  const [authority, key, certificate] = [files.authority, files.key, files.certificate].map((pem) => Buffer.from(pem));
  return grpc.ChannelCredentials.createSsl(authority, key, certificate);
}

/** What a server's handler is given. */
interface IncomingCall {
  getAuthContext(): { sslPeerCertificate?: PeerCertificate } | null;
  getPeer(): string;
}

/** The caller's role. @throws ChannelError `unauthenticated` if its certificate has none */
export function roleOf(call: IncomingCall): Role {
  const subject = call.getAuthContext()?.sslPeerCertificate?.subject;
  // Several OUs come as an array: such a certificate is none of ours.
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

/** The name in the caller's certificate (CN). @throws ChannelError `unauthenticated` if it has none, or several */
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
