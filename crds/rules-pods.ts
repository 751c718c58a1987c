/** What a cluster can give and may be asked for: resources, volumes and pod templates. Each rule is one of the CRD's in CEL. */
import { parseQuantity } from "./quantity.ts";
import type { Rule } from "./rules.ts";
import type {
  PodSpecOverlay,
  PodVolume,
  Resources,
  SecurityContext,
  TrainingRunSpec,
} from "./trainingrun.generated.ts";

/** Whole GPUs, parts of one (`nvidia.com/mig-1g.10gb`) and shared ones (`nvidia.com/gpu.shared`). */
const isGpu = (resource: string): boolean => resource.startsWith("nvidia.com/");
const RESOURCES = ["spec.learner.resources", "spec.actors.resources", "spec.actors.sandboxResources"];
const POD_TEMPLATES = ["spec.learner.podTemplate", "spec.actors.podTemplate"];

/** Of resources that are not the node's own: whole pieces, whose request Kubernetes takes from the limit. */
const isDevice = (resource: string): boolean => resource.includes("/");

const isResource = (name: string): boolean =>
  ["cpu", "memory", "ephemeral-storage"].includes(name) || name.startsWith("hugepages-") || isDevice(name);

const resourceRules = (at: string): Rule[] => [
  {
    at,
    fields: [],
    message:
      "a resource is cpu, memory, ephemeral-storage, hugepages-SIZE or has a domain, such as nvidia.com/gpu; correct its name",
    holds: ({ requests, limits }: Resources) => Object.keys({ ...requests, ...limits }).every(isResource),
  },
  {
    at,
    fields: ["requests", "limits"],
    message: "a request is at most its limit; lower the request or raise the limit",
    holds: ({ requests = {}, limits = {} }: Resources) =>
      Object.entries(requests).every(
        ([name, request]) => limits[name] === undefined || parseQuantity(request) <= parseQuantity(limits[name]),
      ),
  },
  {
    at,
    fields: ["requests", "limits"],
    message: "a device such as nvidia.com/gpu is requested by its limit; move it from requests to limits",
    holds: ({ requests = {}, limits = {} }: Resources) =>
      Object.entries(requests).every(
        ([name, request]) =>
          !isDevice(name) || (limits[name] !== undefined && parseQuantity(request) === parseQuantity(limits[name])),
      ),
  },
  ...["requests", "limits"].map(
    (list): Rule => ({
      at: `${at}.${list}`,
      fields: [],
      message:
        "memory and ephemeral-storage are in bytes, and 512m is half a byte; give at least 1Mi of each, for example 512Mi",
      holds: (amounts: Record<string, number | string>) =>
        ["memory", "ephemeral-storage"].every(
          (name) => amounts[name] === undefined || parseQuantity(amounts[name]) >= parseQuantity("1Mi"),
        ),
    }),
  ),
];

const podTemplateRules = (at: string): Rule[] => [
  {
    at: `${at}.metadata.labels`,
    fields: [],
    message: "labels of app.kubernetes.io/ and longrun.dev/ are longrun's own; choose another prefix",
    holds: (labels: Record<string, string>) =>
      Object.keys(labels).every((key) => !/^(app\.kubernetes\.io|longrun\.dev)\//.test(key)),
  },
  {
    at: `${at}.spec.volumes[]`,
    fields: ["hostPath"],
    message: "a hostPath volume reaches into the node; use a persistentVolumeClaim or an emptyDir",
    holds: (volume: PodVolume) => volume.hostPath === undefined,
  },
  ...["spec.securityContext", "spec.containers[].securityContext", "spec.initContainers[].securityContext"].map(
    (context): Rule => ({
      at: `${at}.${context}`,
      fields: [],
      message:
        "longrun's pods are restricted; remove privileged, allowPrivilegeEscalation, added capabilities, the root user and an unconfined seccompProfile",
      holds: isRestricted,
    }),
  ),
  refusedFields(
    at,
    ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"],
    "programs, answers and keys are kept apart by namespaces; remove hostNetwork, hostPID, hostIPC and shareProcessNamespace",
  ),
  refusedFields(
    at,
    ["serviceAccountName", "serviceAccount", "automountServiceAccountToken"],
    "longrun's pods have accounts of their own without a token; remove serviceAccountName, serviceAccount and automountServiceAccountToken",
  ),
  refusedFields(
    at,
    ["restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds"],
    "longrun restarts and stops pods by fields of its own; remove restartPolicy, terminationGracePeriodSeconds and activeDeadlineSeconds, and see stopGraceSeconds",
  ),
];

/** Nothing that the pod security level `restricted` refuses. */
function isRestricted(context: SecurityContext): boolean {
  const { privileged, allowPrivilegeEscalation, capabilities, runAsUser, runAsNonRoot, seccompProfile } = context;
  const loose = privileged || allowPrivilegeEscalation || capabilities?.add || seccompProfile?.type === "Unconfined";
  return !loose && runAsUser !== 0 && runAsNonRoot !== false;
}

function refusedFields(at: string, names: string[], message: string): Rule {
  return {
    at: `${at}.spec`,
    fields: [],
    message,
    holds: (spec: PodSpecOverlay) => names.every((name) => spec[name] === undefined),
  };
}

/** How many of each GPU resource the learner has. */
const gpusOf = ({ learner }: TrainingRunSpec): string[] =>
  Object.entries(learner.resources.limits ?? {}).flatMap(([name, limit]) => (isGpu(name) ? [String(limit)] : []));

/** Whether the learner has a GPU, where it computes on one. */
export function hasItsGpu(spec: TrainingRunSpec): boolean {
  return spec.learner.device !== "CUDA" || gpusOf(spec).includes("1");
}

export const POD_RULES: Rule[] = [
  {
    at: "spec",
    fields: ["learner.resources.limits"],
    message:
      "the learner uses one GPU or none, or one part of a GPU (training on several is not implemented; with LoRA a 3B model fits on one); keep one nvidia.com resource in learner.resources.limits, such as nvidia.com/gpu, with 1",
    holds: (spec: TrainingRunSpec) => {
      const gpus = gpusOf(spec);
      return gpus.every((count) => ["0", "1"].includes(count)) && gpus.filter((count) => count === "1").length <= 1;
    },
  },
  {
    at: "spec",
    fields: ["learner.device"],
    when: "cluster",
    message:
      "learner.device CUDA needs a GPU; add nvidia.com/gpu: 1, or one part of a GPU, to learner.resources.limits, or remove learner.resources where the cluster's default has one",
    // Without resources of its own the run has the administrator's, which the controller knows alone.
    holds: (spec: TrainingRunSpec) => {
      const { requests = {}, limits = {} } = spec.learner.resources;
      return hasItsGpu(spec) || Object.keys({ ...requests, ...limits }).length === 0;
    },
  },
  {
    at: "spec",
    fields: ["actors.sandboxResources.limits"],
    message:
      "a sandbox needs more memory than its program may use, or the kernel ends both: raise actors.sandboxResources.limits memory above executionMemoryBytes, or remove it",
    holds: ({ actors, tasks }: TrainingRunSpec) => {
      const limit = actors.sandboxResources.limits?.memory;
      return limit === undefined || tasks.every((task) => task.executionMemoryBytes < parseQuantity(limit));
    },
  },
  {
    at: "spec",
    fields: ["actors.sandboxResources.limits", "actors.sandboxResources.requests"],
    message: "a sandbox that requests memory has a limit too; give actors.sandboxResources.limits memory",
    holds: ({ actors: { sandboxResources: resources } }: TrainingRunSpec) =>
      resources.requests?.memory === undefined || resources.limits?.memory !== undefined,
  },
  {
    at: "spec",
    fields: ["actors.podTemplate.spec.volumes"],
    message:
      "actors.podTemplate would mount the claim of privateData, and programs could read the answers; remove that volume",
    holds: ({ actors, tasks }: TrainingRunSpec) => {
      const claims = actors.podTemplate?.spec?.volumes?.map((volume) => volume.persistentVolumeClaim?.claimName) ?? [];
      return tasks.every(({ privateData }) => {
        const answers = privateData?.persistentVolumeClaim?.claimName;
        return answers === undefined || !claims.includes(answers);
      });
    },
  },
  {
    at: "spec.learner.storage.size",
    fields: [],
    message: "learner.storage.size holds the store and the checkpoints; give at least 100Mi",
    holds: (size: string) => parseQuantity(size) >= parseQuantity("100Mi"),
  },
  ...RESOURCES.flatMap(resourceRules),
  ...POD_TEMPLATES.flatMap(podTemplateRules),
];
