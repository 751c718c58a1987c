/** The hash of a file as its server lists it, computed while the bytes arrive. */
import { createHash, type Hash } from "node:crypto";
import type { RepoFile } from "./server.ts";

export interface FileHash {
  update(chunk: Uint8Array): void;
  /** Returns the hash of the bytes so far, in the form of `RepoFile.hash`. */
  digest(): string;
}

export function newHash({ algorithm, bytes, partBytes }: RepoFile): FileHash {
  if (algorithm === "md5-parts") return new PartsHash(partBytes!);
  const hash = algorithm === "git" ? createHash("sha1").update(`blob ${bytes}\0`) : createHash(algorithm);
  return { update: (chunk) => void hash.update(chunk), digest: () => hash.copy().digest("hex") };
}

/** Computes the ETag that S3 gives an object that was uploaded in parts. */
class PartsHash implements FileHash {
  readonly #partBytes: number;
  readonly #done: Buffer[] = [];
  #part: Hash = createHash("md5");
  #length = 0;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  update(chunk: Uint8Array): void {
    for (let rest = chunk; rest.length > 0; ) {
      if (this.#length === this.#partBytes) this.#finishPart();
      const taken = rest.subarray(0, this.#partBytes - this.#length);
      this.#part.update(taken);
      this.#length += taken.length;
      rest = rest.subarray(taken.length);
    }
  }

  digest(): string {
    const parts = [...this.#done, this.#part.copy().digest()];
    return `${createHash("md5").update(Buffer.concat(parts)).digest("hex")}-${parts.length}`;
  }

  #finishPart(): void {
    this.#done.push(this.#part.digest());
    this.#part = createHash("md5");
    this.#length = 0;
  }
}
