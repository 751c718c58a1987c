/** Credentials of an S3 client: variables, or another source that the library finds, such as a workload identity. */
import type { S3ClientConfig } from "@aws-sdk/client-s3";
import { TransferError } from "./errors.ts";

export const CREDENTIALS =
  "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or whatever else an S3 client finds (AWS_PROFILE, a workload identity)";

/** Settings of a client whose requests are not signed. */
export const ANONYMOUS: S3ClientConfig = {
  credentials: { accessKeyId: "", secretAccessKey: "" },
  signer: { sign: async (request) => request },
};

/** Returns the credentials in the variables; without them the library looks elsewhere. */
export function credentialsOf({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN }: NodeJS.ProcessEnv) {
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return {};
  const token = AWS_SESSION_TOKEN ? { sessionToken: AWS_SESSION_TOKEN } : {};
  return { credentials: { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY, ...token } };
}

/** Variables that a cluster gives a pod whose service account has a workload identity: by AWS's STS, or by an agent of the node. */
const IDENTITY = [
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
];

/** Returns the error of a workload identity that gave no credentials; undefined where there is no such identity. */
export function identityFailure(cause: unknown, env: NodeJS.ProcessEnv): TransferError | undefined {
  const [variable] = IDENTITY.filter((name) => env[name]);
  if (!variable) return undefined;
  const { name, message, code, $metadata } = cause as NodeJS.ErrnoException & {
    $metadata?: { httpStatusCode: number };
  };
  const status = $metadata?.httpStatusCode;
  const detail = status === undefined ? message : `${status} ${name} (${message})`;
  const named = [variable, "AWS_ROLE_ARN"].filter((it) => env[it]).map((it) => `${it} ${env[it]}`);
  const problem = `the workload identity (${named.join(", ")}) gives no credentials: ${detail}`;
  const needsPerson = code === "ENOENT" || (status !== undefined && status < 500);
  const again = needsPerson ? {} : { again: {} };
  const remedy = "check the role, and that it trusts this service account";
  return new TransferError(needsPerson ? "access" : "network", `${problem}; ${remedy}`, { cause, ...again });
}
