/** Cases of the rules for the learner, the actors and the generators: numbers, resources, engines. */
import { HUB, type RuleCase } from "./rule-case.ts";
import { POD_TEMPLATE_CASES } from "./rule-cases-pods.ts";

function resourceCases(at: string): RuleCase[] {
  const set = (text: string): string[] => [`${at.replace("spec.", "")}={${text}}`];
  return [
    {
      at,
      message: "a resource is cpu, memory",
      refused: set("requests: {cpus: 2}"),
      accepted: set("requests: {cpu: 2, hugepages-2Mi: 2Mi, ephemeral-storage: 1Gi}"),
    },
    {
      at,
      message: "a resource is cpu, memory",
      refused: set("limits: {ram: 2Gi}"),
      accepted: set("limits: {memory: 6Gi}"),
    },
    {
      at,
      message: "a request is at most its limit",
      refused: set("requests: {memory: 9Gi}, limits: {memory: 9000Mi}"),
      accepted: set("requests: {memory: 9Gi}, limits: {memory: 9216Mi}"),
    },
    {
      at,
      message: "a request is at most its limit",
      refused: set("requests: {cpu: 1}, limits: {cpu: 999m}"),
      accepted: set("requests: {cpu: '0.1'}, limits: {cpu: 100m}"),
    },
    {
      at,
      message: "a device such as nvidia.com/gpu is requested by its limit",
      refused: set("requests: {nvidia.com/gpu: 1}"),
      accepted: set('requests: {nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: 1}'),
    },
    ...[
      ["requests", "requests: {memory: 0}, limits: {memory: 6Gi}"],
      ["requests", "requests: {memory: 1m}, limits: {memory: 6Gi}"],
      ["requests", "requests: {ephemeral-storage: 512m}"],
      ["limits", "limits: {ephemeral-storage: 0}"],
      ...(at.includes("sandbox") ? [] : [["limits", "limits: {memory: 512m}"]]),
    ].map(([list, text]) => ({
      at: `${at}.${list}`,
      message: "memory and ephemeral-storage are in bytes",
      refused: set(text!),
      accepted: set(
        "requests: {memory: 5Gi, ephemeral-storage: 1Mi}, limits: {memory: 6442450944, ephemeral-storage: 2Mi}",
      ),
    })),
  ];
}

const CLAIMS = "podTemplate: {spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: one-gpu}]}}";

const PODS: RuleCase[] = [
  ...[
    ["learner", "resources"],
    ["actors", "resources"],
    ["actors", "sandboxResources"],
  ].map(([part, field]) => ({
    at: `spec.${part}`,
    message: "a container can use claims of its podTemplate only",
    refused: [`${part}={${field}: {claims: [{name: gpus}]}}`, `${part}={${field}: {claims: [{name: gpu}]}, ${CLAIMS}}`],
    accepted: [`${part}={${field}: {claims: [{name: gpus, request: a}]}, ${CLAIMS}}`],
  })),
  ...["learner", "actors", "generation"].flatMap((part) =>
    ["", ", resourceClaimName: a, resourceClaimTemplateName: b"].map((source) => ({
      at: `spec.${part}.podTemplate.spec.resourceClaims[]`,
      message: "a claim is a ResourceClaim or made from a template",
      refused: [`${part}={podTemplate: {spec: {resourceClaims: [{name: gpus${source}}]}}}`],
      accepted: [`${part}={podTemplate: {spec: {resourceClaims: [{name: gpus, resourceClaimName: a}]}}}`],
    })),
  ),
  {
    at: "spec",
    message: "the learner uses whole GPUs, 16 at most",
    refused: ["learner.resources.limits={nvidia.com/gpu: 17}"],
    accepted: ["1", '"1"', "8", "16"].map((count) => `learner.resources.limits={nvidia.com/gpu: ${count}}`),
  },
  ...["nvidia.com/mig-1g.10gb: 2", "nvidia.com/gpu.shared: 2", "nvidia.com/gpu: 4, nvidia.com/gpu.shared: 1"].map(
    (limits) => ({
      at: "spec",
      message: "the learner uses whole GPUs, 16 at most",
      refused: [`learner.resources.limits={${limits}}`],
      accepted: ["learner.resources.limits={nvidia.com/gpu: 0, nvidia.com/mig-1g.10gb: 1}"],
    }),
  ),
  ...["requests: {cpu: 1}", "limits: {memory: 8Gi}", "limits: {nvidia.com/gpu: 0}"].map((resources) => ({
    at: "spec",
    message: "learner.device CUDA needs a GPU",
    refused: [`learner={device: CUDA, resources: {${resources}}}`],
    accepted: ["nvidia.com/gpu.shared: 1", "nvidia.com/gpu: 4"].map(
      (limits) => `learner={device: CUDA, resources: {limits: {${limits}}}}`,
    ),
  })),
  {
    at: "spec",
    message: "learner.device CUDA needs a GPU",
    refused: ["learner={device: CUDA, resources: {limits: {example.com/gpu: 1}}}"],
    accepted: ["learner.device=CUDA", `learner={device: CUDA, resources: {claims: [{name: gpus}]}, ${CLAIMS}}`],
  },
  {
    at: "spec",
    message: "a sandbox needs more memory than its program may use",
    refused: ["actors.sandboxResources.limits.memory=4Gi"],
    accepted: ["actors.sandboxResources.limits.memory=4097Mi"],
  },
  {
    at: "spec",
    message: "a sandbox that requests memory has a limit too",
    refused: ["actors.sandboxResources.requests.memory=1Gi"],
    accepted: ["actors.sandboxResources={requests: {memory: 1Gi}, limits: {memory: 8Gi}}"],
  },
  {
    at: "spec.learner.storage.size",
    message: "learner.storage.size holds the store",
    refused: ["learner.storage.size=99Mi"],
    accepted: ["learner.storage.size=0.1Gi"],
  },
  ...["spec.learner.sharedMemory", "spec.generation.sharedMemory"].map((at) => ({
    at,
    message: "a size is a number of bytes",
    refused: [`${at.replace("spec.", "")}=1gi`],
    accepted: [`${at.replace("spec.", "")}=1.5Gi`],
  })),
  ...[
    "spec.learner.resources",
    "spec.actors.resources",
    "spec.actors.sandboxResources",
    "spec.generation.resources",
  ].flatMap(resourceCases),
  ...POD_TEMPLATE_CASES,
];
const LORA = "adaptation: {type: LoRA, rank: 16}";
const VOLUME = "policy: ./m, volume: {image: {reference: m}}";
const VLLM = "engine: VLLM, image: vllm";
const GENERATION: RuleCase[] = [
  {
    at: "spec.generation",
    message: "a container can use claims of its podTemplate only",
    refused: ["generation={resources: {claims: [{name: gpus}]}}"],
    accepted: [`generation={resources: {claims: [{name: gpus}]}, ${CLAIMS}}`],
  },
  {
    at: "spec.generation",
    message: "generation.replicas.min is at most",
    refused: ["generation.replicas={min: 2}"],
    accepted: ["generation.replicas={min: 2, max: 2}"],
  },
  {
    at: "spec.generation",
    message: "engine VLLM needs an image",
    refused: [`model={${LORA}, ${VOLUME}}`, "generation={engine: VLLM}"],
    accepted: [`model={${LORA}, ${VOLUME}}`, `generation={${VLLM}}`],
  },
  ...["nvidia.com/mig-1g.10gb: 2", "nvidia.com/gpu: 17", "nvidia.com/gpu: 1, nvidia.com/gpu.shared: 1"].map(
    (limits) => ({
      at: "spec.generation",
      message: "a generator uses whole GPUs, 16 at most",
      refused: [`generation.resources.limits={${limits}}`],
      accepted: ["generation.resources.limits={nvidia.com/gpu: 4}"],
    }),
  ),
  ...[VOLUME, `${VOLUME}, ${LORA.replace("16", "512")}`].map((model) => ({
    at: "spec",
    message: "generation.engine VLLM takes LoRA adapters of at most rank 512",
    refused: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}}`],
    accepted: [`model={${model}}`, `generation={${VLLM}}`],
  })),
  {
    at: "spec",
    message: "generation.engine VLLM takes LoRA adapters of at most rank 512",
    refused: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}, weightSync: Adapter}`],
    accepted: [`model={${VOLUME}, ${LORA.replace("16", "513")}}`, `generation={${VLLM}, weightSync: Full}`],
  },
  ...["generation={weightSync: Full}", `model={policy: quickstart, ${LORA}}`].map((accepted) => ({
    at: "spec",
    message: "there is no adapter",
    refused: ["generation={weightSync: Adapter}"],
    accepted: ["generation={weightSync: Adapter}", accepted],
  })),
  {
    at: "spec",
    message: "with top-p vLLM's log-probs",
    refused: [`model={${VOLUME}, ${LORA}, topP: 0.9}`, `generation={${VLLM}}`],
    accepted: [`model={${VOLUME}, ${LORA}, topP: 0.9}`, "generation={}"],
  },
  {
    at: "spec",
    message: "vLLM's image has none of longrun's policies",
    refused: [`model={policy: quickstart, ${LORA}}`, `generation={${VLLM}}`],
    accepted: [`model={policy: quickstart, ${LORA}}`, "generation={}"],
  },
  {
    at: "spec",
    message: "model.source is fetched onto the run's own volume",
    refused: [`model={source: ${HUB}}`, "generation={}"],
    accepted: [`model={${VOLUME}}`, "generation={}"],
  },
];

export const WORKLOAD_CASES: RuleCase[] = [
  {
    at: "spec",
    message: "leases would end between two heartbeats",
    refused: ["learner={heartbeatSeconds: 5, leaseSeconds: 9.5}"],
    accepted: ["learner={heartbeatSeconds: 5, leaseSeconds: 10}"],
  },
  {
    at: "spec",
    message: "actors.min is at most actors.max",
    refused: ["actors={min: 3, max: 2}"],
    accepted: ["actors={min: 3, max: 3}"],
  },
  {
    at: "spec",
    message: "actors.replicas (kubectl scale) needs actors.autoscaling External",
    refused: ["actors.replicas=0"],
    accepted: ["actors={replicas: 4, autoscaling: External}"],
  },
  {
    at: "spec",
    message: "actors.isolation Pod runs one execution per pod",
    refused: ["actors={isolation: Pod, slots: 2}"],
    accepted: ["actors={isolation: Pod, slots: 1}"],
  },
  {
    at: "spec",
    message: "restart.backoffSeconds is at most",
    refused: ["restart.backoffSeconds=31"],
    accepted: ["restart.backoffSeconds=30"],
  },
  ...PODS,
  ...GENERATION,
];
