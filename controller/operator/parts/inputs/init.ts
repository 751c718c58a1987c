/** `NAME-init`: a Job that copies another run's checkpoint to this run's volume before the learner starts. */
import type { V1PodSpec, V1PodTemplateSpec } from "@kubernetes/client-node";
import { INIT_CHECKPOINT } from "../../desired/config-map.ts";
import { jobPod } from "../../desired/job-pod.ts";
import { childMetadata, childName, digestOf, type Run, SPEC_HASH } from "../../desired/names.ts";
import { APP, CONTAINER_SECURITY, POD_SECURITY } from "../../desired/pod.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Job } from "../../kube/resources.ts";
import type { Raw } from "../../kube/types.ts";

/** Pods that may fail before the Job fails. */
const ATTEMPTS = 3;

/** For namespaces with a quota. The copy of a checkpoint took 69 MB (2026-11-22); a lower limit only shrinks the page cache. */
const RESOURCES = { requests: { cpu: "50m", memory: "96Mi" }, limits: { cpu: "1", memory: "512Mi" } };

/**
 * Returns a Job that copies, so that the source's claim is held only for the minutes of the copy. The other run can then continue, be
 * resumed or be deleted, and the learner's pod needs only one volume.
 *
 * @param claimName claim of this run
 * @param sourceClaim claim of the run that `initFrom.run` names
 */
export function desiredInit(run: Run, claimName: string, sourceClaim: string, settings: Settings): Job {
  const { metadata, spec } = jobWithoutClaims(run, settings);
  const { template } = spec!;
  const volumes = [
    { name: "data", persistentVolumeClaim: { claimName } },
    { name: "source", persistentVolumeClaim: { claimName: sourceClaim, readOnly: true } },
  ];
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { ...metadata, annotations: { ...metadata.annotations, [SPEC_HASH]: initHash(run, settings) } },
    spec: {
      ...spec!,
      template: { ...template, spec: { ...template.spec!, volumes: [...volumes, ...(template.spec!.volumes ?? [])] } },
    },
  };
}

/** Returns the digest of the Job without the volumes of runs. If the desired digest differs, a Job that has not started is created again. */
export function initHash(run: Run, settings: Settings): string {
  return digestOf(jobWithoutClaims(run, settings).spec);
}

function jobWithoutClaims(run: Run, settings: Settings): Job {
  const { learner, initFrom } = run.spec;
  const iteration = initFrom?.iteration === undefined ? [] : ["--iteration", String(initFrom.iteration)];
  const pod: V1PodSpec = {
    restartPolicy: "Never",
    serviceAccountName: childName(run, "learner"),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: POD_SECURITY,
    containers: [
      {
        name: "copy",
        image: learner.image ?? settings.image,
        imagePullPolicy: learner.imagePullPolicy ?? settings.imagePullPolicy,
        command: ["node", `${APP}/learner/copy-checkpoint.ts`],
        args: ["--from", "/source/run", "--to", INIT_CHECKPOINT, ...iteration],
        resources: RESOURCES,
        securityContext: CONTAINER_SECURITY,
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts: [
          { name: "data", mountPath: "/data" },
          { name: "source", mountPath: "/source", readOnly: true },
        ],
      },
    ],
  };
  return {
    metadata: childMetadata(run, "init", "init"),
    spec: {
      backoffLimit: ATTEMPTS - 1,
      template: jobPod(run, "init", pod) as Raw<V1PodTemplateSpec>,
    },
  };
}
