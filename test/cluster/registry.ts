/** A real registry of OCI artifacts (distribution, the reference implementation), for tests. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findBinary, missingBinaries, REGISTRY } from "./binaries.ts";
import { freePorts, startPart } from "./processes.ts";

/** Returns one line that names missing programs; undefined if the registry can be started. */
export const missingRegistry = (): string | undefined => missingBinaries(REGISTRY);

const START_SECONDS = 20;
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const sha256 = (body: Buffer | string): string => createHash("sha256").update(body).digest("hex");

export class OciRegistry implements AsyncDisposable {
  /** 127.0.0.1:PORT. */
  readonly host: string;
  readonly #part: ReturnType<typeof startPart>;
  readonly #folder: string;

  private constructor(host: string, part: ReturnType<typeof startPart>, folder: string) {
    this.host = host;
    this.#part = part;
    this.#folder = folder;
  }

  static async start(): Promise<OciRegistry> {
    const folder = mkdtempSync(join(tmpdir(), "longrun-registry-"));
    const [port] = await freePorts(1);
    const host = `127.0.0.1:${port}`;
    const config = join(folder, "config.json");
    const storage = { filesystem: { rootdirectory: join(folder, "data") } };
    writeFileSync(config, JSON.stringify({ version: "0.1", storage, http: { addr: host } }));
    const part = startPart(findBinary("registry")!, ["serve", config], join(folder, "log"));
    const registry = new OciRegistry(host, part, folder);
    for (const endMs = Date.now() + START_SECONDS * 1000; ; await sleep(50)) {
      const answer = await fetch(`http://${host}/v2/`).catch(() => undefined);
      if (answer?.ok) return registry;
      const ended = part.ended();
      if (ended || Date.now() > endMs) throw new Error(ended ?? "the registry does not answer");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#part.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** Pushes files as an artifact, like `oras push`. Returns the digest of its manifest. */
  async push(repository: string, tag: string, files: Record<string, Buffer | string>): Promise<string> {
    const layers: object[] = [];
    for (const [name, content] of Object.entries(files)) {
      const annotations = { "org.opencontainers.image.title": name };
      layers.push({
        mediaType: "application/octet-stream",
        ...(await this.#putBlob(repository, content)),
        annotations,
      });
    }
    const empty = { mediaType: "application/vnd.oci.empty.v1+json", ...(await this.#putBlob(repository, "{}")) };
    const kind = { schemaVersion: 2, mediaType: MANIFEST, artifactType: "application/vnd.test" };
    const manifest = JSON.stringify({ ...kind, config: empty, layers });
    const url = `http://${this.host}/v2/${repository}/manifests/${tag}`;
    const answer = await fetch(url, { method: "PUT", body: manifest, headers: { "content-type": MANIFEST } });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return sha256(manifest);
  }

  async #putBlob(repository: string, content: Buffer | string): Promise<{ digest: string; size: number }> {
    const begun = await fetch(`http://${this.host}/v2/${repository}/blobs/uploads/`, { method: "POST" });
    const url = new URL(begun.headers.get("location")!, `http://${this.host}`);
    const body = Buffer.from(content);
    const digest = `sha256:${sha256(body)}`;
    url.searchParams.set("digest", digest);
    const headers = { "content-type": "application/octet-stream" };
    const answer = await fetch(url, { method: "PUT", body, headers });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return { digest, size: body.length };
  }
}
