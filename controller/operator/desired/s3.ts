/** Settings that a Job's pod needs to use a bucket: address, credentials, and egress from the cluster. */
import type { V1EnvVar, V1NetworkPolicyEgressRule } from "@kubernetes/client-node";

/** The S3 fields of `model.source.s3`. */
interface S3Settings {
  bucket: string;
  prefix?: string;
  endpoint?: string;
  region?: string;
  secretRef?: { name: string };
  serviceAccountName?: string;
}

export const s3Url = ({ bucket, prefix }: S3Settings): string => `s3://${bucket}${prefix ? `/${prefix}` : ""}`;

/** Keys of the Secret, and names of the variables. */
const KEYS = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"];
const OPTIONAL = "AWS_SESSION_TOKEN";

/** Returns the variables that S3 clients read. A pod without a workload identity never asks for the node's identity. */
export function s3Env({ endpoint, region, secretRef, serviceAccountName }: S3Settings): V1EnvVar[] {
  const variables = {
    ...(endpoint !== undefined && { AWS_ENDPOINT_URL_S3: endpoint }),
    ...(region !== undefined && { AWS_REGION: region }),
    ...(serviceAccountName === undefined && { AWS_EC2_METADATA_DISABLED: "true" }),
  };
  const keys = secretRef
    ? KEYS.map((key) => ({
        name: key,
        valueFrom: { secretKeyRef: { name: secretRef.name, key, ...(key === OPTIONAL && { optional: true }) } },
      }))
    : [];
  return [...Object.entries(variables).map(([name, value]) => ({ name, value })), ...keys];
}

/** Egress to the EKS agent that issues credentials for a pod's service account. */
const POD_IDENTITY: V1NetworkPolicyEgressRule = {
  to: [{ ipBlock: { cidr: "169.254.170.23/32" } }],
  ports: [{ port: 80, protocol: "TCP" }],
};

export function s3Egress({ serviceAccountName }: S3Settings): V1NetworkPolicyEgressRule[] {
  return serviceAccountName === undefined ? [] : [POD_IDENTITY];
}
