/** `NAME-model`: a Job that fetches the model of `model.source` onto the run's volume before the learner starts. */
import type { V1PodSpec, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { Job } from "../kube/resources.ts";
import { FETCHED_MODEL } from "./config-map.ts";
import { likeLearner } from "./init.ts";
import { childMetadata, childName, digestOf, labelsOf, type Run, SPEC_HASH } from "./names.ts";
import { APP, CONTAINER_SECURITY, POD_SECURITY } from "./pod.ts";
import type { Settings } from "./settings.ts";

/** Pods that failed before the Job is given up: Kubernetes waits 10 s before the second, each time twice as long. */
const ATTEMPTS = 7;
/** Exit status of a fetch that a person must mend first: the name, access, the disk (learner/hub/README.md). */
const NEEDS_PERSON = 2;

/**
 * Requests and limits of the fetch, so that a namespace with a ResourceQuota admits the pod. A fetch that read Qwen2.5's tokenizer
 * peaked at 303 MB (2026-11-25). The page cache counts against the limit, but the kernel shrinks it in time.
 */
const RESOURCES = { requests: { cpu: "100m", memory: "384Mi" }, limits: { cpu: "2", memory: "1Gi" } };

const TOKEN = "/token";

/** The token is mounted in this pod alone. What has come stays on the volume, so the next pod goes on from there. */
export function desiredModelJob(run: Run, claimName: string, settings: Settings): Job {
  const { learner, model } = run.spec;
  const { repo, revision, endpoint, secretRef } = model.source!.huggingFace;
  const variables = {
    ...settings.proxy,
    ...(endpoint !== undefined && { HF_ENDPOINT: endpoint }),
    ...(secretRef && { HF_TOKEN_PATH: `${TOKEN}/${secretRef.key}` }),
  };
  const volumes: V1Volume[] = [{ name: "data", persistentVolumeClaim: { claimName } }];
  const volumeMounts: V1VolumeMount[] = [{ name: "data", mountPath: "/data" }];
  if (secretRef) {
    const items = [{ key: secretRef.key, path: secretRef.key }];
    volumes.push({ name: "token", secret: { secretName: secretRef.name, items, defaultMode: 0o440 } });
    volumeMounts.push({ name: "token", mountPath: TOKEN, readOnly: true });
  }
  const pod: V1PodSpec = {
    restartPolicy: "Never",
    serviceAccountName: childName(run, "model"),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: POD_SECURITY,
    containers: [
      {
        name: "fetch",
        image: learner.image ?? settings.image,
        imagePullPolicy: learner.imagePullPolicy ?? settings.imagePullPolicy,
        command: ["node", `${APP}/learner/commands/model-command.ts`],
        args: ["fetch", repo, "--revision", revision, "--out", FETCHED_MODEL, "--json"],
        env: Object.entries(variables).map(([name, value]) => ({ name, value })),
        resources: RESOURCES,
        securityContext: CONTAINER_SECURITY,
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts,
      },
    ],
    volumes,
  };
  const spec: Job["spec"] = {
    backoffLimit: ATTEMPTS - 1,
    podFailurePolicy: {
      rules: [{ action: "FailJob", onExitCodes: { containerName: "fetch", operator: "In", values: [NEEDS_PERSON] } }],
    },
    template: {
      metadata: { name: childName(run, "model"), labels: labelsOf(run, "model") },
      spec: likeLearner(pod, run),
    },
  };
  const metadata = childMetadata(run, "model", "model");
  return {
    ...{ apiVersion: "batch/v1", kind: "Job" },
    metadata: { ...metadata, annotations: { [SPEC_HASH]: digestOf({ ...spec, volumes: undefined }) } },
    spec,
  };
}
