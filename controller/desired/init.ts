/** `NAME-init`: a Job that copies another run's checkpoint to this run's volume before the learner starts. */
import type { Job } from "../kube/resources.ts";
import { INIT_CHECKPOINT } from "./config-map.ts";
import { childMetadata, childName, labelsOf, type Run } from "./names.ts";
import { APP, CONTAINER_SECURITY, POD_SECURITY } from "./pod.ts";
import type { Settings } from "./settings.ts";

/** Pods that failed before the Job is given up. */
const ATTEMPTS = 3;

/**
 * For namespaces with a quota. The copy of a checkpoint took 69 MB (2026-11-22); what it reads and writes passes through
 * the page cache, which the limit only makes smaller.
 */
const RESOURCES = { requests: { cpu: "50m", memory: "96Mi" }, limits: { cpu: "1", memory: "512Mi" } };

/**
 * A copy, not a mount: the source's claim is held for the minutes of the copy, not for the life of this run, so that the
 * other run can go on, be resumed or be deleted, and the learner's pod needs one volume alone.
 *
 * @param claimName of this run
 * @param sourceClaim of the run that `initFrom.run` names
 */
export function desiredInit(run: Run, claimName: string, sourceClaim: string, settings: Settings): Job {
  const { learner, initFrom } = run.spec;
  const iteration = initFrom?.iteration === undefined ? [] : ["--iteration", String(initFrom.iteration)];
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: childMetadata(run, "init", "init"),
    spec: {
      backoffLimit: ATTEMPTS - 1,
      template: {
        metadata: { name: childName(run, "init"), labels: labelsOf(run, "init") },
        spec: {
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
          volumes: [
            { name: "data", persistentVolumeClaim: { claimName } },
            { name: "source", persistentVolumeClaim: { claimName: sourceClaim, readOnly: true } },
          ],
        },
      },
    },
  };
}
