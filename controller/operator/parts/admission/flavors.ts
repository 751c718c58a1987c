/** Adds Kueue's choice of nodes, from flavors and admission checks, to the run's pod templates. */
import { mergeStrategically } from "../../../../crds/strategic-merge.ts";
import type { PodTemplate } from "../../../../crds/trainingrun.ts";
import type { Look } from "../../context.ts";
import { digestOf, type Run } from "../../desired/names.ts";
import { RESOURCE_FLAVOR } from "../../kube/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { BlockedError } from "../../writes/refusals.ts";
import { ACTORS_SET, GENERATORS_SET, LEARNER_SET, type NodeChoice, type Workload } from "./desired.ts";

/** Kueue's ResourceFlavor: only the fields that choose nodes. */
export type ResourceFlavor = KubeObject & {
  spec?: { nodeLabels?: Record<string, string>; tolerations?: NodeChoice["tolerations"] };
};

/** The nodes that Kueue chose in one admission. */
export type Flavors = { of: string; choices: Record<string, NodeChoice[]> };

/** Returns the nodes that Kueue chose for an admitted run. @param known the last result @throws BlockedError | ApiError */
export async function findFlavors({ observed, context }: Look, known: Flavors | undefined): Promise<Flavors> {
  const { admission, admissionChecks } = observed.workload?.status ?? {};
  const of = digestOf([observed.workload?.metadata.uid, admission, admissionChecks]);
  if (known?.of === of) return known;
  const flavors = new Map<string, ResourceFlavor>();
  for (const name of flavorsOf(observed.workload)) {
    const flavor = await context.client.get<ResourceFlavor>(RESOURCE_FLAVOR, { name });
    if (!flavor)
      throw new BlockedError(
        "Queued",
        `Kueue admitted the run to ResourceFlavor ${name}, which does not exist any more: create it again`,
      );
    flavors.set(name, flavor);
  }
  return { of, choices: choicesOf(observed.workload, flavors) };
}

function flavorsOf(workload: Workload | undefined): string[] {
  const assignments = workload?.status?.admission?.podSetAssignments ?? [];
  return [...new Set(assignments.flatMap(({ flavors = {} }) => Object.values(flavors)))];
}

/** Returns Kueue's choices of nodes by pod set. */
export function choicesOf(
  workload: Workload | undefined,
  flavors: ReadonlyMap<string, ResourceFlavor>,
): Record<string, NodeChoice[]> {
  const { admission, admissionChecks = [] } = workload?.status ?? {};
  const choices: Record<string, NodeChoice[]> = {};
  for (const { name, flavors: assigned = {} } of admission?.podSetAssignments ?? []) {
    const ofFlavors = [...new Set(Object.values(assigned))].map((flavor) => {
      const { nodeLabels, tolerations } = flavors.get(flavor)?.spec ?? {};
      return { ...(nodeLabels && { nodeSelector: nodeLabels }), ...(tolerations && { tolerations }) };
    });
    const ofChecks = admissionChecks.flatMap((check) => check.podSetUpdates?.filter((it) => it.name === name) ?? []);
    choices[name] = [...ofFlavors, ...ofChecks.map(({ name: _, ...choice }) => choice)];
  }
  return choices;
}

/** Returns the run with these choices in its pod templates. */
export function placed(run: Run, choices: Record<string, NodeChoice[]>): Run {
  const { learner, actors, generation } = run.spec;
  const over = <Template extends PodTemplate>(template: Template | undefined, set: string): Template | undefined =>
    (choices[set] ?? []).reduce<Template | undefined>((below, { nodeSelector, tolerations, ...metadata }) => {
      const spec = { ...(nodeSelector && { nodeSelector }), ...(tolerations && { tolerations }) };
      return mergeStrategically(below ?? {}, { metadata, spec }) as Template;
    }, template);
  const podTemplates = {
    learner: over(learner.podTemplate, LEARNER_SET),
    actors: over(actors.podTemplate, ACTORS_SET),
    generation: over(generation?.podTemplate, GENERATORS_SET),
  };
  return {
    ...run,
    spec: {
      ...run.spec,
      learner: { ...learner, ...(podTemplates.learner && { podTemplate: podTemplates.learner }) },
      actors: { ...actors, ...(podTemplates.actors && { podTemplate: podTemplates.actors }) },
      ...(generation &&
        podTemplates.generation && { generation: { ...generation, podTemplate: podTemplates.generation } }),
    },
  };
}
