/** What a cluster can give and may be asked for: resources, volumes and pod templates. Each rule is one of the CRD's in CEL. */
import { parseQuantity } from "./quantity.ts";
import type { Rule } from "./rules.ts";
import { subPathRule } from "./rules-fit.ts";
import { isSize } from "./rules-form.ts";
import type { LearnerPodSpec, PodVariable, PodVolume, Resources, TrainingRunSpec } from "./trainingrun.generated.ts";

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

/** Volumes of the learner's pod (`controller/desired/learner.ts`). */
const OWN_VOLUMES = ["data", "config", "tls", "tmp", "public-data", "private-data", "model"];

/** Of longrun, of what chooses a security profile beside securityContext, and of what adds a network to a pod. */
const REFUSED_ANNOTATIONS =
  /^(longrun[.]dev|(container[.])?(apparmor|seccomp)[.]security[.](alpha|beta)[.]kubernetes[.]io|k8s[.]v1[.]cni[.]cncf[.]io|v1[.]multus-cni[.]io)\//;

const podTemplateRules = (at: string): Rule[] => [
  {
    at: `${at}.metadata.labels`,
    fields: [],
    message: "labels of app.kubernetes.io/ and longrun.dev/ are longrun's own; choose another prefix",
    holds: (labels: Record<string, string>) =>
      Object.keys(labels).every((key) => !/^(app\.kubernetes\.io|longrun\.dev)\//.test(key)),
  },
  {
    at: `${at}.metadata.annotations`,
    fields: [],
    message:
      "annotations of longrun.dev/ are longrun's own, a security profile is chosen by securityContext, and a further network would pass by the NetworkPolicies; remove annotations of longrun.dev/, container.apparmor.security.beta.kubernetes.io/, seccomp.security.alpha.kubernetes.io/, k8s.v1.cni.cncf.io/ and v1.multus-cni.io/",
    holds: (annotations: Record<string, string>) =>
      Object.keys(annotations).every((key) => !REFUSED_ANNOTATIONS.test(key)),
  },
  {
    at: `${at}.spec.containers[].env[]`,
    fields: [],
    message:
      "an environment variable is a value or a ConfigMap's key, and never a Secret's; give value, or valueFrom with configMapKeyRef",
    holds: ({ value, valueFrom }: PodVariable) =>
      valueFrom === undefined || (valueFrom.configMapKeyRef !== undefined && value === undefined),
  },
  {
    at: `${at}.spec.containers[].env[].name`,
    fields: [],
    message: "the name of an environment variable has letters, digits and underscores, and no digit first; correct it",
    holds: (name: string) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name),
  },
  {
    at: `${at}.spec.containers[].env[].name`,
    fields: [],
    message: "environment variables of LONGRUN_ are longrun's own; set the field of the spec, or choose another name",
    holds: (name: string) => !name.startsWith("LONGRUN_"),
  },
];

const LEARNER_SPEC = "spec.learner.podTemplate.spec";

/** An actor has no volume but longrun's: its programs would see none. */
const VOLUME_RULES: Rule[] = [
  {
    at: LEARNER_SPEC,
    fields: ["containers"],
    message:
      "a container can mount volumes of the same podTemplate only; add the volume to learner.podTemplate.spec.volumes, or correct the mount's name",
    holds: ({ containers = [], volumes = [] }: LearnerPodSpec) =>
      containers.every(({ volumeMounts = [] }) =>
        volumeMounts.every((mount) => volumes.some((volume) => volume.name === mount.name)),
      ),
  },
  {
    at: `${LEARNER_SPEC}.containers[].volumeMounts[].mountPath`,
    fields: [],
    message:
      "volumes of a podTemplate are mounted below /mnt, since other folders hold longrun's own files; give a path such as /mnt/cache, without .. and without a colon",
    holds: (path: string) => path.startsWith("/mnt/") && !/[:]|\/[.][.]\/|\/[.][.]$/.test(path),
  },
  subPathRule(`${LEARNER_SPEC}.containers[].volumeMounts[].subPath`),
  {
    at: `${LEARNER_SPEC}.volumes[]`,
    fields: [],
    message:
      "a volume of a podTemplate is an emptyDir, a persistentVolumeClaim, a configMap or an image; give exactly one of them",
    holds: ({ emptyDir, persistentVolumeClaim, configMap, image }: PodVolume) =>
      [emptyDir, persistentVolumeClaim, configMap, image].filter((source) => source !== undefined).length === 1,
  },
  {
    at: `${LEARNER_SPEC}.volumes[].name`,
    fields: [],
    message: `volumes ${OWN_VOLUMES.slice(0, -1).join(", ")} and ${OWN_VOLUMES.at(-1)} are longrun's own; choose another name`,
    holds: (name: string) => !OWN_VOLUMES.includes(name),
  },
];

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
    at: "spec.learner.storage.size",
    fields: [],
    message: "learner.storage.size holds the store and the checkpoints; give at least 100Mi",
    holds: (size: string) => !isSize(size) || parseQuantity(size) >= parseQuantity("100Mi"),
  },
  ...RESOURCES.flatMap(resourceRules),
  ...POD_TEMPLATES.flatMap(podTemplateRules),
  ...VOLUME_RULES,
];
