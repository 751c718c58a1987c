/** Names of artifacts in a registry: oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST. */
import { TransferError } from "./errors.ts";

export interface OciPlace {
  host: string;
  repository: string;
  /** Tag or digest. */
  version: string;
  /** The same scheme as the registries' own clients use: http on this machine, https elsewhere. */
  origin: string;
}

export const isOci = (text: string): boolean => text.startsWith("oci://");

const FORM =
  /^oci:\/\/([a-z0-9.-]+(?::\d+)?)\/([a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::([\w][\w.-]{0,127})|@(sha256:[0-9a-f]{64}))$/;

/** @throws TransferError that names the fault of `url` */
export function parseOciUrl(url: string): OciPlace {
  const [, host, repository, tag, digest] = FORM.exec(url) ?? [];
  if (host !== undefined && repository !== undefined) {
    const isHere = /^(localhost|127\.0\.0\.1)(:|$)/.test(host);
    return { host, repository, version: (tag ?? digest)!, origin: `${isHere ? "http" : "https"}://${host}` };
  }
  const form = "oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST";
  throw new TransferError("input", `${url} is no artifact of a registry; give ${form}`);
}
