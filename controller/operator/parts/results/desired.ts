/** `NAME-results`: a Job that copies the newest checkpoint and the best program from the run's volume into a bucket. */

import type { V1PodSpec } from "@kubernetes/client-node";
import { mergeStrategically } from "../../../../crds/strategic-merge.ts";
import type { Results } from "../../../../crds/trainingrun.ts";
import { jobPod } from "../../desired/job-pod.ts";
import { childMetadata, childName, digestOf, podLabels, type Run, SPEC_HASH } from "../../desired/names.ts";
import { APP, CONTAINER_SECURITY, POD_SECURITY } from "../../desired/pod.ts";
import { s3Env, s3Url } from "../../desired/s3.ts";
import type { Settings } from "../../desired/settings.ts";
import type { Job } from "../../kube/resources.ts";

/** On the Job: its `ResultsMark` as JSON. */
const RESULTS_OF = "longrun.dev/results-of";

/** Failed pods after which the Job fails. Kubernetes waits 10 s before the second pod, and doubles each further pause. */
const ATTEMPTS = 5;
/** Exit status of a copy that needs a person: wrong bucket, no access (learner/results/README.md). */
const NEEDS_PERSON = 2;
/** For namespaces with a quota. Four parts of 16 MiB are in memory at once. */
const RESOURCES = { requests: { cpu: "100m", memory: "256Mi" }, limits: { cpu: "2", memory: "1Gi" } };

/** The state of the run in a copy, as in status.results. */
export interface ResultsMark {
  url: string;
  /** Iteration of the newest checkpoint. */
  iteration: number;
  /** Whether the run was over. */
  final: boolean;
}

export const markOf = ({ metadata }: Job): ResultsMark =>
  JSON.parse(metadata.annotations?.[RESULTS_OF] ?? '{"url":"","iteration":0,"final":false}') as ResultsMark;

export const resultsUrl = ({ s3 }: Results): string => s3Url(s3);

/**
 * Returns the Job that copies results. Only its pod has the credentials. It reads the volume and writes nothing there.
 *
 * @param besideLearner whether a learner has mounted the volume, so that the pod must run on the same node
 */
export function desiredResultsJob(
  run: Run,
  claimName: string,
  mark: ResultsMark,
  besideLearner: boolean,
  settings: Settings,
): Job {
  const { learner, results } = run.spec;
  const { keepLast, s3, deadlineSeconds } = results!;
  const pod: V1PodSpec = {
    restartPolicy: "Never",
    serviceAccountName: s3.serviceAccountName ?? childName(run, "results"),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    securityContext: POD_SECURITY,
    containers: [
      {
        name: "push",
        image: learner.image ?? settings.image,
        imagePullPolicy: learner.imagePullPolicy ?? settings.imagePullPolicy,
        command: ["node", `${APP}/learner/commands/results-command.ts`],
        args: ["push", "/data/run", s3Url(s3), "--keep-last", String(keepLast), "--json"],
        env: [...Object.entries(settings.proxy ?? {}).map(([name, value]) => ({ name, value })), ...s3Env(s3)],
        resources: RESOURCES,
        securityContext: CONTAINER_SECURITY,
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts: [{ name: "data", mountPath: "/data", readOnly: true }],
      },
    ],
    // Not readOnly in the claim, because a node would mount the volume a second time with other options.
    volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
  };
  const spec = {
    backoffLimit: ATTEMPTS - 1,
    activeDeadlineSeconds: deadlineSeconds,
    podFailurePolicy: {
      rules: [{ action: "FailJob", onExitCodes: { containerName: "push", operator: "In", values: [NEEDS_PERSON] } }],
    },
    template: mergeStrategically(jobPod(run, "results", pod), besideLearner ? { spec: besideLearnerOf(run) } : {}),
  } as NonNullable<Job["spec"]>;
  const annotations = { [SPEC_HASH]: digestOf(spec), [RESULTS_OF]: JSON.stringify(mark) };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: childMetadata(run, "results", "results", annotations),
    spec,
  };
}

/** Constraints that spread pods must not keep the pod from the learner's node. */
const besideLearnerOf = (run: Run) => ({ affinity: nextToLearner(run), topologySpreadConstraints: null });

const nextToLearner = (run: Run) => ({
  podAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: podLabels(run, "learner") } },
    ],
  },
});
