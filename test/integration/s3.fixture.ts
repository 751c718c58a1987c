import { execFile } from "node:child_process";
import fs from "node:fs";
import { connect, createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { fetchModel } from "../../learner/hub/fetch-model.ts";
import type { TransferLimits } from "../../learner/hub/limits.ts";
import { missingS3, S3Server } from "../cluster/s3-server.ts";

export const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
export const MODEL_COMMAND = fileURLToPath(new URL("../../learner/commands/model-command.ts", import.meta.url));
export const RESULTS_COMMAND = fileURLToPath(new URL("../../learner/commands/results-command.ts", import.meta.url));
export const FAST = { firstWaitSeconds: 0.01, longestWaitSeconds: 0.02 };
export const MiB = 2 ** 20;
export const skip = missingS3();
export const root = fs.mkdtempSync(path.join(os.tmpdir(), "s3-test-"));
after(() => fs.rmSync(root, { recursive: true }));

export let server: S3Server;
let count = 0;
export const fresh = () => path.join(root, `folder ${count++}`);

export async function put(bucket: string, key: string, body: Buffer | string): Promise<void> {
  await server.client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
}

export async function putParts(bucket: string, key: string, body: Buffer, partBytes: number): Promise<void> {
  const place = { Bucket: bucket, Key: key };
  const { UploadId } = await server.client.send(new CreateMultipartUploadCommand(place));
  const Parts: { PartNumber: number; ETag: string }[] = [];
  for (let at = 0; at < body.length; at += partBytes) {
    const PartNumber = Parts.length + 1;
    const part = { ...place, UploadId, PartNumber, Body: body.subarray(at, at + partBytes) };
    Parts.push({ PartNumber, ETag: (await server.client.send(new UploadPartCommand(part))).ETag! });
  }
  await server.client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } }));
}

export async function keys(bucket: string, prefix: string): Promise<string[]> {
  const { Contents = [] } = await server.client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
  return Contents.map(({ Key }) => Key!);
}

export async function putPolicy(prefix: string, files: Record<string, Buffer | string> = {}): Promise<void> {
  for (const name of fs.readdirSync(POLICY))
    await put("models", `${prefix}/${name}`, fs.readFileSync(path.join(POLICY, name)));
  for (const [name, body] of Object.entries(files)) await put("models", `${prefix}/${name}`, body);
}

export async function fetchFrom(
  url: string,
  out: string,
  env: NodeJS.ProcessEnv = {},
  limits: Partial<TransferLimits> = {},
) {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text.trimEnd()) };
  const around = { LONGRUN_CACHE: root, ...server.env, ...env };
  return { ...(await fetchModel({ repo: url, out, env: around, output, limits: { ...FAST, ...limits } })), lines };
}

/** Passes bytes on to the server, and breaks the connection after `bytes` in all, received or sent. */
export async function cutting(direction: "up" | "down", bytes: number) {
  const { hostname, port } = new URL(server.endpoint);
  let left = bytes;
  let passed = 0;
  const proxy = createServer((client) => {
    const onward = connect(Number(port), hostname);
    const end = () => {
      for (const socket of [client, onward]) socket.destroy();
    };
    for (const socket of [client, onward]) socket.on("error", end).on("close", end);
    const [counted, plain] = direction === "up" ? [client, onward] : [onward, client];
    plain.pipe(counted);
    counted.on("data", (chunk: Buffer) => {
      passed += chunk.length;
      left -= chunk.length;
      if (left < 0) return end();
      if (!plain.write(chunk)) {
        counted.pause();
        plain.once("drain", () => counted.resume());
      }
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port: own } = proxy.address() as { port: number };
  return {
    env: { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${own}` },
    passed: () => passed,
    [Symbol.dispose]: () => void proxy.close(),
  };
}

export function command(program: string, args: string[], env: NodeJS.ProcessEnv = {}) {
  const { AWS_PROFILE: _, ...rest } = process.env;
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) =>
    execFile(
      process.execPath,
      [program, ...args],
      { env: { ...rest, ...server.env, ...env }, timeout: 60_000 },
      (error, stdout, stderr) => resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  );
}

/** Starts the server before a file's tests, and ends it after them. */
export function useServer(): void {
  before(async () => {
    // The library must find no credentials by itself.
    process.env.AWS_EC2_METADATA_DISABLED = "true";
    for (const name of ["CONFIG_FILE", "SHARED_CREDENTIALS_FILE"]) process.env[`AWS_${name}`] = path.join(root, "none");
    server = await S3Server.start("models", "results");
  });
  after(async () => server[Symbol.asyncDispose]());
}
