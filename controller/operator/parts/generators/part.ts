/** The generators, which write programs instead of the learner (`spec.generation`). */
import { settle } from "../../context.ts";
import { DEPLOYMENT, POD, REPLICA_SET, SECRET, SERVICE } from "../../kube/resources.ts";
import type { Part } from "../../part.ts";
import { eventBlocker } from "../../status/blockers.ts";
import { stuckPod } from "../../status/warnings.ts";
import { tryStep } from "../../steps.ts";
import { generationCondition, generationStatus, planGeneration, UNUSED_SECONDS, unusedSince } from "./generation.ts";
import { type GeneratorsMemory, reconcileGenerators, stabiliserOf } from "./generators.ts";

export const generators: Part<GeneratorsMemory, unknown, "lifecycle" | "certified" | "held", "generation"> = {
  name: "generators",
  needs: ["lifecycle", "certified", "held"],
  gives: ["generation"],
  kinds: () => [DEPLOYMENT, REPLICA_SET, POD, SERVICE, SECRET],
  initial: () => ({ unusedSinceMs: new Map() }),
  observe({ observed, memory, nowMs }) {
    const unusedSinceMs = unusedSince(observed, memory.unusedSinceMs, nowMs);
    const reported = [...unusedSinceMs.values()].map((sinceMs) => sinceMs + UNUSED_SECONDS * 1000);
    const next = Math.min(...reported.filter((atMs) => atMs > nowMs));
    const againSeconds = Number.isFinite(next) ? (next - nowMs) / 1000 : undefined;
    return { facts: undefined, remember: { unusedSinceMs }, againSeconds };
  },
  async reconcile(look, _, { lifecycle: { stage }, certified, held }) {
    const { observed, nowMs } = look;
    const { stabiliser, ...known } = stabiliserOf(look);
    settle(look, known);
    const plan = planGeneration(observed, { stage, stabiliser, nowMs });
    const write = () => reconcileGenerators(look, plan, certified);
    // Generators that are not needed any more hold GPUs: they are stopped whatever holds the run.
    const mayWrite = !held || plan?.replicas === 0;
    return { ...(mayWrite ? await tryStep(observed.run, write) : {}), given: { generation: plan } };
  },
  stuck({ observed: { generators }, nowMs }) {
    const pending = generators.pods.filter(({ status }) => status?.phase === "Pending");
    return { subject: pending.find((pod) => stuckPod(pod, nowMs)), waiting: pending.length > 0 };
  },
  report({ observed, memory, nowMs }, _, { generation: plan }, { refused, warning }) {
    const { certificate, unusedSinceMs } = memory;
    const why = refused ?? (warning && eventBlocker(warning, "spec.generation.podTemplate"));
    return {
      conditions: generationCondition(observed, plan && { plan, refused: why, unusedSinceMs, nowMs }),
      status: { generation: generationStatus(observed, plan) },
      certificates: certificate ? [certificate] : [],
    };
  },
};
