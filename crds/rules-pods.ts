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

const GPU = "nvidia.com/gpu";
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

const gpusOf = ({ learner }: TrainingRunSpec): string => String(learner.resources.limits?.[GPU] ?? 0);

export const POD_RULES: Rule[] = [
  {
    at: "spec",
    fields: ["learner.resources.limits"],
    message:
      "the learner uses one GPU or none (training on several is not implemented; with LoRA a 3B model fits on one); set learner.resources.limits nvidia.com/gpu to 1 or remove it",
    holds: (spec: TrainingRunSpec) => ["0", "1"].includes(gpusOf(spec)),
  },
  {
    at: "spec",
    fields: ["learner.device"],
    when: "cluster",
    message: "learner.device CUDA needs a GPU; set learner.resources.limits nvidia.com/gpu to 1",
    holds: (spec: TrainingRunSpec) => spec.learner.device !== "CUDA" || gpusOf(spec) === "1",
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
