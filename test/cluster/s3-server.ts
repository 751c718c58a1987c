/** A real server of S3 over a folder (versitygw), for tests: buckets are folders of it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { findBinary, missingBinaries, S3_SERVER } from "./binaries.ts";
import { freePorts, startPart } from "./processes.ts";

/** Returns one line that names missing programs; undefined if the server can be started. */
export const missingS3 = (): string | undefined => missingBinaries(S3_SERVER);

const START_SECONDS = 20;
export const S3_KEYS = { AWS_ACCESS_KEY_ID: "tests", AWS_SECRET_ACCESS_KEY: "secret-of-tests" };

export class S3Server implements AsyncDisposable {
  readonly endpoint: string;
  readonly client: S3Client;
  readonly #part: ReturnType<typeof startPart>;
  readonly #folder: string;

  private constructor(endpoint: string, part: ReturnType<typeof startPart>, folder: string) {
    this.endpoint = endpoint;
    this.#part = part;
    this.#folder = folder;
    const credentials = { accessKeyId: S3_KEYS.AWS_ACCESS_KEY_ID, secretAccessKey: S3_KEYS.AWS_SECRET_ACCESS_KEY };
    this.client = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials });
  }

  static async start(...buckets: string[]): Promise<S3Server> {
    const folder = mkdtempSync(join(tmpdir(), "longrun-s3-"));
    for (const name of ["data", "meta"]) mkdirSync(join(folder, name));
    const [port] = await freePorts(1);
    const args = ["--access", S3_KEYS.AWS_ACCESS_KEY_ID, "--secret", S3_KEYS.AWS_SECRET_ACCESS_KEY];
    const posix = ["posix", "--sidecar", join(folder, "meta"), join(folder, "data")];
    const address = `127.0.0.1:${port}`;
    const log = join(folder, "log");
    const part = startPart(findBinary("versitygw")!, [...args, "--port", address, ...posix], log);
    const server = new S3Server(`http://${address}`, part, folder);
    for (const bucket of buckets) await server.#makeBucket(bucket);
    return server;
  }

  /** Environment variables of a client with access to the server. */
  get env(): Record<string, string> {
    return { ...S3_KEYS, AWS_ENDPOINT_URL_S3: this.endpoint };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
    await this.#part.stop();
    rmSync(this.#folder, { recursive: true });
  }

  async #makeBucket(name: string): Promise<void> {
    for (const endMs = Date.now() + START_SECONDS * 1000; ; )
      try {
        await this.client.send(new CreateBucketCommand({ Bucket: name }));
        return;
      } catch (error) {
        const ended = this.#part.ended();
        if (ended || Date.now() > endMs) throw new Error(ended ?? "the S3 server does not answer", { cause: error });
        await sleep(50);
      }
  }
}
