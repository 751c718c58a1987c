/** What the pod of a Job needs to use a bucket: the address, the credentials, the way out of the cluster. */
import type { V1EnvVar, V1NetworkPolicyEgressRule } from "@kubernetes/client-node";

/** As `model.source.s3` has it. */
export interface S3Settings {
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

/** What every client of S3 reads. A pod without a workload identity does not ask the node for the node's own. */
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

/** Where EKS' agent hands out the credentials of a pod's service account. */
const POD_IDENTITY: V1NetworkPolicyEgressRule = {
  to: [{ ipBlock: { cidr: "169.254.170.23/32" } }],
  ports: [{ port: 80, protocol: "TCP" }],
};

export function s3Egress({ serviceAccountName }: S3Settings): V1NetworkPolicyEgressRule[] {
  return serviceAccountName === undefined ? [] : [POD_IDENTITY];
}
