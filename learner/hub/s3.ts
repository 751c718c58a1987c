/** A bucket of S3 or of a compatible server: the client, and its errors explained. Credentials are those of every S3 client. */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { Readable } from "node:stream";
import {
  type _Object,
  GetObjectCommand,
  NoSuchKey,
  paginateListObjectsV2,
  S3Client,
  type S3ClientConfig,
} from "@aws-sdk/client-s3";
import { TransferError } from "./errors.ts";
import { proxyOf } from "./proxy.ts";
import { failureOf } from "./refusals.ts";
import { ANONYMOUS, CREDENTIALS, credentialsOf, identityFailure } from "./s3-credentials.ts";
import type { S3Place } from "./s3-url.ts";
import { type OpenAnswer, openAnswer, persist, readText, type Transfer, tooMuch } from "./transfer.ts";

const ENDPOINT = "https://s3.amazonaws.com";
/** Region in signatures for S3-compatible servers without regions. */
const NO_REGION = "us-east-1";

/**
 * Rights by the request that needs them. To credentials without s3:ListBucket S3 does not say that an object is not there; it denies
 * the access.
 */
const RIGHTS: Readonly<Record<string, string>> = {
  ListObjectsV2Command: "s3:ListBucket",
  GetObjectCommand: "s3:GetObject and s3:ListBucket",
  HeadObjectCommand: "s3:GetObject and s3:ListBucket",
  PutObjectCommand: "s3:PutObject",
  CreateMultipartUploadCommand: "s3:PutObject",
  UploadPartCommand: "s3:PutObject",
  CompleteMultipartUploadCommand: "s3:PutObject",
  ListMultipartUploadsCommand: "s3:ListBucketMultipartUploads",
  ListPartsCommand: "s3:ListMultipartUploadParts",
  AbortMultipartUploadCommand: "s3:AbortMultipartUpload",
  DeleteObjectCommand: "s3:DeleteObject",
};

/** An object of a list: a server's entries without a key are left out. */
type ListedObject = _Object & { Key: string };

export class S3Bucket {
  /** s3://BUCKET, for messages. */
  readonly name: string;
  readonly bucket: string;
  /** Address for messages: the configured one, else AWS's. */
  readonly endpoint: string;
  readonly client: S3Client;
  readonly transfer: Transfer;
  readonly #env: NodeJS.ProcessEnv;
  readonly #isAnonymous: boolean;

  private constructor({ bucket }: S3Place, env: NodeJS.ProcessEnv, transfer: Transfer, isAnonymous: boolean) {
    this.name = `s3://${bucket}`;
    this.bucket = bucket;
    this.transfer = transfer;
    this.#env = env;
    this.#isAnonymous = isAnonymous;
    const endpoint = endpointOf(env);
    this.endpoint = endpoint ?? ENDPOINT;
    this.client = new S3Client({ ...clientOptions(env, endpoint), ...(isAnonymous && ANONYMOUS) });
    // An error does not name its request.
    this.client.middlewareStack.add(
      (next, { commandName }) =>
        (args) =>
          next(args).catch((cause: S3Failure) => Promise.reject(Object.assign(cause, { commandName }))),
      { step: "initialize" },
    );
  }

  /** Without credentials requests are not signed, which public buckets take. @throws TransferError */
  static open(place: S3Place, env: NodeJS.ProcessEnv, transfer: Transfer): Promise<S3Bucket> {
    const bucket = new S3Bucket(place, env, transfer, false);
    const find = () =>
      bucket.client.config.credentials().then(
        () => bucket,
        (cause: unknown) => {
          const failure = identityFailure(cause, env);
          const hasNone = !failure && (cause as Error).name === "CredentialsProviderError";
          if (hasNone) return new S3Bucket(place, env, transfer, true);
          throw failure ?? cause;
        },
      );
    return persist(transfer, (cause) => bucket.explain(cause), find);
  }

  /**
   * Sends a request until it succeeds.
   *
   * @param bytes of its body
   * @throws TransferError
   */
  persist<Result>(send: (signal: AbortSignal) => Promise<Result>, bytes = 0): Promise<Result> {
    const { limits, signal } = this.transfer;
    const seconds = limits.answerSeconds + bytes / limits.slowestBytesPerSecond;
    const work = () => send(AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(seconds * 1000))]));
    return persist(this.transfer, (cause) => this.explain(cause), work);
  }

  /** Returns the objects whose keys begin with `prefix`; with a delimiter, only keys without one behind the prefix. */
  list(prefix: string, delimiter?: string): Promise<ListedObject[]> {
    const { listPages } = this.transfer.limits;
    const request = { Bucket: this.bucket, Prefix: prefix, ...(delimiter && { Delimiter: delimiter }) };
    return this.persist(async (abortSignal) => {
      const objects: _Object[] = [];
      let pages = 0;
      for await (const page of paginateListObjectsV2({ client: this.client }, request, { abortSignal })) {
        if (++pages > listPages) throw tooMuch(this.name, `more than ${listPages} pages of files`);
        objects.push(...(page.Contents ?? []));
      }
      return objects.filter((object): object is ListedObject => object.Key !== undefined);
    });
  }

  /** Returns the text of a small object and its ETag, undefined where there is none. */
  read(key: string): Promise<{ text: string; etag: string | undefined } | undefined> {
    return this.persist(async (abortSignal) => {
      try {
        const request = new GetObjectCommand({ Bucket: this.bucket, Key: key });
        const { Body, ETag } = await this.client.send(request, { abortSignal });
        const body = Body as unknown as AsyncIterable<Uint8Array> | undefined;
        return { text: await readText(body, `${this.name}/${key}`, this.transfer.limits), etag: ETag };
      } catch (cause) {
        if (cause instanceof NoSuchKey) return undefined;
        throw cause;
      }
    });
  }

  /** Requests an object's bytes from `start` on. One try. @param etag expected; if the object has another one, the answer is 412 */
  get(key: string, start: number, etag?: string): Promise<OpenAnswer> {
    const range = start > 0 ? `bytes=${start}-` : undefined;
    return openAnswer(this.transfer, async (abortSignal) => {
      const request = new GetObjectCommand({ Bucket: this.bucket, Key: key, Range: range, IfMatch: etag });
      try {
        const { Body, ContentRange, $metadata } = await this.client.send(request, { abortSignal });
        const body = Body as unknown as AsyncIterable<Uint8Array>;
        return { status: $metadata.httpStatusCode ?? 200, range: ContentRange, body };
      } catch (cause) {
        if ((cause as Error).name !== "InvalidRange") throw cause;
        return { status: 416, range: undefined, body: Readable.from([]) };
      }
    });
  }

  /** Returns the error of a request, with the remedy. */
  explain(cause: unknown): TransferError {
    if (cause instanceof TransferError) return cause;
    const { name, message, commandName = "", $metadata } = cause as S3Failure;
    const status = $metadata?.httpStatusCode;
    if (/XML parse error/.test(message ?? "")) return this.#noS3(status, cause);
    const detail = `${status ?? ""} ${name}${message && message !== name ? ` (${message})` : ""}`.trim();
    const refuse = (code: "input" | "access", text: string) => new TransferError(code, text, { cause });
    if (/^Region is missing/.test(message ?? "")) return refuse("input", `${this.name} needs a region: set AWS_REGION`);
    if (name === "CredentialsProviderError") return refuse("access", `${this.name}: ${message}; ${CREDENTIALS}`);
    if (name === "NoSuchBucket")
      return refuse("input", `${this.endpoint} has no bucket ${this.bucket}; check the name and AWS_ENDPOINT_URL_S3`);
    if (name === "NoSuchKey" || name === "NotFound")
      return refuse("input", `${this.name} has no longer what it lists; try again`);
    if (name === "PermanentRedirect" || name === "AuthorizationHeaderMalformed" || status === 301)
      return refuse("input", `${this.name} is in another region (${detail}); set AWS_REGION to it`);
    if (name === "NoSuchUpload")
      return new TransferError("hash", `another push to ${this.name} has ended an upload; push again`, { cause });
    if (status === 412)
      return new TransferError("hash", `an object of ${this.name} was replaced while it was read; try again`, {
        cause,
      });
    const mayPass = status === 408 || status === 429 || (status ?? 0) >= 500 || PASSING.has(name);
    if (mayPass) return new TransferError("network", `${this.endpoint} answers ${detail}`, { cause, again: {} });
    if (WRONG_KEYS.has(name)) {
      const remedy = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";
      return refuse("access", `${this.endpoint} refuses ${this.name}: ${detail}; ${remedy}`);
    }
    if (status === 401 || status === 403) {
      const remedy = this.#isAnonymous
        ? `no credentials were found: ${CREDENTIALS}`
        : `give the credentials the right ${RIGHTS[commandName]}`;
      return refuse("access", `${this.endpoint} refuses ${this.name}: ${detail}; ${remedy}`);
    }
    if (status !== undefined) return new TransferError("network", `${this.endpoint} answers ${detail}`, { cause });
    return failureOf(cause, this.endpoint, this.#env, "AWS_ENDPOINT_URL_S3 for another server");
  }

  /** Returns the error of an answer that is no XML, so that a proxy or another server sent it. */
  #noS3(status: number | undefined, cause: unknown): TransferError {
    const { protocol, host } = new URL(this.endpoint);
    const proxy = proxyOf(protocol, host, this.#env);
    const through = proxy ? `, or the proxy ${proxy.address} (${proxy.variable}) before it,` : "";
    const mayPass = (status ?? 0) >= 500 ? { again: {} } : {};
    const problem = `${this.endpoint}${through} answers ${status} and not as S3 does`;
    return new TransferError("network", `${problem}; check ${proxy ? "both addresses" : "AWS_ENDPOINT_URL_S3"}`, {
      cause,
      ...mayPass,
    });
  }

  [Symbol.dispose](): void {
    this.client.destroy();
  }
}

interface S3Failure {
  name: string;
  message?: string;
  /** Class of the request, such as GetObjectCommand. */
  commandName?: string;
  $metadata?: { httpStatusCode?: number };
}

/** Error codes that a retry may overcome: the client corrects its clock and fetches credentials anew. */
const PASSING = new Set([
  ...["RequestTimeTooSkewed", "ExpiredToken", "ExpiredTokenException", "RequestTimeout", "SlowDown"],
  ...["ThrottlingException", "Throttling", "InternalError", "ServiceUnavailable", "OperationAborted"],
]);

const WRONG_KEYS = new Set(["SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken"]);

function clientOptions(env: NodeJS.ProcessEnv, endpoint: string | undefined): S3ClientConfig {
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || (endpoint && NO_REGION);
  const agent = { keepAlive: true, proxyEnv: env };
  return {
    ...(region && { region }),
    ...credentialsOf(env),
    // Servers other than AWS rarely have a host name for each bucket.
    ...(endpoint && { endpoint, forcePathStyle: true }),
    maxAttempts: 1, // `persist` tries again
    requestHandler: { httpAgent: new HttpAgent(agent), httpsAgent: new HttpsAgent(agent) },
    // Uploads carry a hash of their own; servers other than AWS refuse checksum trailers.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
  };
}

function endpointOf({ AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL }: NodeJS.ProcessEnv): string | undefined {
  const endpoint = AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL || undefined;
  if (endpoint === undefined) return undefined;
  const { protocol, username } = URL.canParse(endpoint) ? new URL(endpoint) : { protocol: "", username: "" };
  if ((protocol === "https:" || protocol === "http:") && username === "") return endpoint.replace(/\/+$/, "");
  throw new TransferError(
    "input",
    "AWS_ENDPOINT_URL_S3 is not an address such as https://minio.example.com; correct or unset it",
  );
}
