/** `NAME-model`: a Job that fetches the model of `model.source` onto the run's volume before the learner starts. */
import type { V1EnvVar, V1PodSpec, V1PodTemplateSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { HuggingFaceSource, ModelSource, OciSource } from "../../../../crds/trainingrun.ts";
import { FETCHED_MODEL } from "../../desired/config-map.ts";
import { jobPod } from "../../desired/job-pod.ts";
import { childMetadata, childName, digestOf, type Run, SPEC_HASH } from "../../desired/names.ts";
import { APP, CONTAINER_SECURITY, POD_SECURITY } from "../../desired/pod.ts";
import { s3Env, s3Url } from "../../desired/s3.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Job } from "../../kube/resources.ts";
import type { Raw } from "../../kube/types.ts";

/** Failed pods after which the Job fails. Kubernetes waits 10 s before the second pod, and doubles each further pause. */
const ATTEMPTS = 7;
/** Exit status of a fetch that needs a person: wrong name, no access, full disk (learner/hub/README.md). */
const NEEDS_PERSON = 2;

/**
 * Requests and limits of the fetch, so that a namespace with a ResourceQuota admits the pod. A fetch that read Qwen2.5's tokenizer
 * peaked at 303 MB (2026-11-25). The page cache counts against the limit, but the kernel shrinks it in time.
 */
const RESOURCES = { requests: { cpu: "100m", memory: "384Mi" }, limits: { cpu: "2", memory: "1Gi" } };

const TOKEN = "/token";

/** Settings of the Job that depend on the kind of source. */
interface Fetch {
  /** Arguments of `longrun model fetch`. */
  args: string[];
  env: V1EnvVar[];
  volumes: V1Volume[];
  mounts: V1VolumeMount[];
  serviceAccountName?: string | undefined;
}

function fetchOf({ huggingFace, s3, oci }: ModelSource): Fetch {
  if (huggingFace) return hubFetch(huggingFace);
  if (oci) return ociFetch(oci);
  const { serviceAccountName } = s3!;
  return { args: [s3Url(s3!)], env: s3Env(s3!), volumes: [], mounts: [], serviceAccountName };
}

function hubFetch({ repo, revision, endpoint, secretRef }: HuggingFaceSource): Fetch {
  const variables = {
    ...(endpoint !== undefined && { HF_ENDPOINT: endpoint }),
    ...(secretRef && { HF_TOKEN_PATH: `${TOKEN}/${secretRef.key}` }),
  };
  const env = Object.entries(variables).map(([name, value]) => ({ name, value }));
  const args = [repo, "--revision", revision];
  if (!secretRef) return { args, env, volumes: [], mounts: [] };
  const items = [{ key: secretRef.key, path: secretRef.key }];
  return {
    args,
    env,
    volumes: [{ name: "token", secret: { secretName: secretRef.name, items, defaultMode: 0o440 } }],
    mounts: [{ name: "token", mountPath: TOKEN, readOnly: true }],
  };
}

function ociFetch(source: OciSource): Fetch {
  const args = [sourceName({ oci: source })];
  if (!source.secretRef) return { args, env: [], volumes: [], mounts: [] };
  const items = [{ key: ".dockerconfigjson", path: "config.json" }];
  return {
    args,
    env: [{ name: "DOCKER_CONFIG", value: TOKEN }],
    volumes: [{ name: "token", secret: { secretName: source.secretRef.name, items, defaultMode: 0o440 } }],
    mounts: [{ name: "token", mountPath: TOKEN, readOnly: true }],
  };
}

/** Returns the name of a source in messages and folders: OWNER/NAME at a revision, s3://… or oci://… */
export function sourceName({ huggingFace, s3, oci }: ModelSource): string {
  if (oci) return `oci://${oci.reference}`;
  return huggingFace ? `${huggingFace.repo} at ${huggingFace.revision}` : s3Url(s3!);
}

/** Returns the Job that fetches the model. Only its pod has the credentials. Files stay on the volume, so the next pod resumes. */
export function desiredModelJob(run: Run, claimName: string, settings: Settings): Job {
  const { learner, model } = run.spec;
  const fetch = fetchOf(model.source!);
  const pod: V1PodSpec = {
    restartPolicy: "Never",
    serviceAccountName: fetch.serviceAccountName ?? childName(run, "model"),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: POD_SECURITY,
    containers: [
      {
        name: "fetch",
        image: learner.image ?? settings.image,
        imagePullPolicy: learner.imagePullPolicy ?? settings.imagePullPolicy,
        command: ["node", `${APP}/learner/commands/model-command.ts`],
        args: ["fetch", ...fetch.args, "--out", FETCHED_MODEL, "--json"],
        env: [...Object.entries(settings.proxy ?? {}).map(([name, value]) => ({ name, value })), ...fetch.env],
        resources: RESOURCES,
        securityContext: CONTAINER_SECURITY,
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts: [{ name: "data", mountPath: "/data" }, ...fetch.mounts],
      },
    ],
    volumes: [{ name: "data", persistentVolumeClaim: { claimName } }, ...fetch.volumes],
  };
  const spec: Job["spec"] = {
    backoffLimit: ATTEMPTS - 1,
    podFailurePolicy: {
      rules: [{ action: "FailJob", onExitCodes: { containerName: "fetch", operator: "In", values: [NEEDS_PERSON] } }],
    },
    template: jobPod(run, "model", pod) as Raw<V1PodTemplateSpec>,
  };
  const annotations = { [SPEC_HASH]: digestOf({ ...spec, volumes: undefined }) };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: childMetadata(run, "model", "model", annotations),
    spec,
  };
}
