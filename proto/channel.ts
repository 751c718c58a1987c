/**
 * Credentials of both ends of the channel, and who is calling.
 *
 * Both ends show a certificate of the run's own authority (`certificates.ts`); nobody else gets as far as a call. What
 * a caller may do is decided per call by its certificate's role.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PeerCertificate } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { ROLES, type Role } from "./certificates.ts";
import { ChannelError } from "./errors.ts";

function readTls(directory: string): { authority: Buffer; certificate: Buffer; key: Buffer } {
  const read = (name: string) => {
    try {
      return readFileSync(join(directory, name));
    } catch (cause) {
      throw new ChannelError(
        "tlsFile",
        `${join(directory, name)} cannot be read: --tls must name a folder with ca.crt, tls.crt and tls.key`,
        { cause },
      );
    }
  };
  return { authority: read("ca.crt"), certificate: read("tls.crt"), key: read("tls.key") };
}

/** Of a server that refuses whoever has no certificate of the same authority. @param directory see writeTlsFiles */
export function serverCredentials(directory: string): grpc.ServerCredentials {
  const { authority, certificate, key } = readTls(directory);
  return grpc.ServerCredentials.createSsl(authority, [{ private_key: key, cert_chain: certificate }], true);
}

/** Of a client that shows its certificate and checks the server's name. @param directory see writeTlsFiles */
export function clientCredentials(directory: string): grpc.ChannelCredentials {
  const { authority, certificate, key } = readTls(directory);
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
