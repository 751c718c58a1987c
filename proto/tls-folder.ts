/**
 * A folder with ca.crt, tls.crt and tls.key that may change while the process runs: a rotated Kubernetes Secret.
 *
 * It is a certificate provider of grpc-js: each new connection gets the folder's current files; open connections continue. (grpc-js' own
 * FileWatcherCertificateProvider publishes whatever it reads, so it may combine a key with another certificate while the kubelet swaps the
 * files.)
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { experimental } from "@grpc/grpc-js";
import { ChannelError } from "./errors.ts";

/** The kubelet brings a changed Secret to a pod within a minute or two; certificates are renewed days before they expire. */
const DEFAULT_REFRESH_SECONDS = 10;

export interface TlsBuffers {
  authority: Buffer;
  certificate: Buffer;
  key: Buffer;
}

/** @throws ChannelError `tlsFile` that names the file */
export function readTls(directory: string): TlsBuffers {
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

/**
 * Returns when a folder's own certificate and its authority's certificate expire, in Unix seconds.
 *
 * @returns undefined while the files cannot be read, as during a change
 */
export function certificateExpirations(directory: string): { own: number; authority: number } | undefined {
  try {
    const { authority, certificate } = readTls(directory);
    const [own, signs] = [certificate, authority].map((pem) => new X509Certificate(pem).validToDate.getTime() / 1000);
    return { own: own!, authority: signs! };
  } catch {
    return undefined;
  }
}

export class TlsFolder implements experimental.CertificateProvider {
  readonly #directory: string;
  readonly #refreshSeconds: number;
  readonly #authorityListeners = new Set<experimental.CaCertificateUpdateListener>();
  readonly #identityListeners = new Set<experimental.IdentityCertificateUpdateListener>();
  #current: TlsBuffers;
  #timer: NodeJS.Timeout | undefined;

  /** Reads the folder at once. @throws ChannelError `tlsFile` */
  constructor(directory: string, refreshSeconds = DEFAULT_REFRESH_SECONDS) {
    this.#directory = directory;
    this.#refreshSeconds = refreshSeconds;
    this.#current = readTls(directory);
  }

  addCaCertificateListener(listener: experimental.CaCertificateUpdateListener): void {
    this.#authorityListeners.add(listener);
    this.#start();
    process.nextTick(listener, { caCertificate: this.#current.authority });
  }

  addIdentityCertificateListener(listener: experimental.IdentityCertificateUpdateListener): void {
    this.#identityListeners.add(listener);
    this.#start();
    process.nextTick(listener, this.#identity);
  }

  removeCaCertificateListener(listener: experimental.CaCertificateUpdateListener): void {
    this.#authorityListeners.delete(listener);
    this.#stopIfUnused();
  }

  removeIdentityCertificateListener(listener: experimental.IdentityCertificateUpdateListener): void {
    this.#identityListeners.delete(listener);
    this.#stopIfUnused();
  }

  get #identity(): experimental.IdentityCertificateUpdate {
    return { certificate: this.#current.certificate, privateKey: this.#current.key };
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.#refresh(), this.#refreshSeconds * 1000).unref();
  }

  #stopIfUnused(): void {
    if (this.#authorityListeners.size + this.#identityListeners.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #refresh(): void {
    const found = this.#readWhole();
    if (found === undefined) return;
    const before = this.#current;
    this.#current = found;
    // Trust first, so that a peer with a certificate of the new authority is already accepted.
    if (!found.authority.equals(before.authority))
      for (const listener of this.#authorityListeners) listener({ caCertificate: found.authority });
    if (!found.certificate.equals(before.certificate))
      for (const listener of this.#identityListeners) listener(this.#identity);
  }

  /** Returns undefined during a change, or while files are missing; the previous files then stay in use. */
  #readWhole(): TlsBuffers | undefined {
    try {
      const found = readTls(this.#directory);
      return new X509Certificate(found.certificate).checkPrivateKey(createPrivateKey(found.key)) ? found : undefined;
    } catch {
      return undefined;
    }
  }
}
