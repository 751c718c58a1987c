/** The learner: its Deployment, the link to it, and what the status says about it. */
import { learnerHost } from "../../desired/names.ts";
import { DEPLOYMENT, POD, REPLICA_SET } from "../../kube/resources.ts";
import { isLearnerUp } from "../../observe.ts";
import type { Part } from "../../part.ts";
import { imagesStatus } from "../../pin.ts";
import { condition } from "../../status/conditions.ts";
import { stuckJob, stuckPod } from "../../status/warnings.ts";
import { tryAll } from "../../steps.ts";
import { isOver } from "../lifecycle/lifecycle.ts";
import { learningCondition } from "./conditions.ts";
import { applyLearner, stops } from "./deployment.ts";
import { learnerFailures } from "./learner-failures.ts";
import { learnerState } from "./learner-state.ts";

/** Stops a learner that must end. */
export const learnerStop: Part<object, unknown, "lifecycle" | "derived" | "claimName"> = {
  name: "learner-stop",
  needs: ["lifecycle", "derived", "claimName"],
  isChild: true,
  async reconcile(look, _, done) {
    if (!stops(look, done.lifecycle)) return {};
    // Nothing starts in this reconcile.
    return { ...(await tryAll(look.observed.run, () => applyLearner(look, done))), failed: true };
  },
};

interface Podless {
  /** Time since which its Deployment should have a pod and has none; after a resume this is later than its creation. */
  podlessSinceMs?: number | undefined;
}

/** Starts or changes the learner, when all that it needs exists. */
export const learner: Part<Podless, Podless, "lifecycle" | "derived" | "claimName" | "mayCreate"> = {
  name: "learner",
  needs: ["lifecycle", "derived", "claimName", "mayCreate"],
  isChild: true,
  kinds: () => [DEPLOYMENT, REPLICA_SET, POD],
  observe({ observed: { deployment, learnerPod }, memory, nowMs }) {
    const isPodless = (deployment?.spec?.replicas ?? 0) > 0 && !learnerPod;
    const podless = { podlessSinceMs: isPodless ? (memory.podlessSinceMs ?? nowMs) : undefined };
    return { facts: podless, remember: podless };
  },
  async reconcile(look, _, done) {
    const { stage, admission } = done.lifecycle;
    // Kueue has not admitted the changed template: the learner stops with its present one.
    const isKept = stage === "Suspending" && admission?.state === "waiting";
    if (!done.mayCreate || done.failed || isKept) return {};
    return tryAll(look.observed.run, () => applyLearner(look, done));
  },
  stuck({ observed: { learnerPod, init, initPod, model, modelPod }, nowMs }) {
    const jobs = [stuckJob(init, initPod, nowMs), stuckJob(model, modelPod, nowMs)];
    const subjects = [stuckPod(learnerPod, nowMs), ...jobs.map(({ subject }) => subject)];
    return { subject: subjects.find((it) => it), waiting: jobs.some(({ waiting }) => waiting) };
  },
  report({ observed, settings, nowMs }, { podlessSinceMs }, { lifecycle, blocked }, { warning }) {
    const state = learnerState({ observed, lifecycle, refused: blocked, warning, podlessSinceMs, nowMs });
    const learning = isOver(lifecycle.stage) ? [] : learningCondition(observed);
    return {
      conditions: [condition("LearnerAvailable", state.available, state), ...learning],
      status: { images: imagesStatus(observed, lifecycle, settings), failures: learnerFailures(observed) },
      againSeconds: state.againSeconds,
    };
  },
};

/** Dials a learner whose container runs, and closes the link of a learner that should be gone. */
export const link: Part<object, unknown, "lifecycle"> = {
  name: "link",
  needs: ["lifecycle"],
  async reconcile({ key, observed, context }, _, { lifecycle: { learnerReplicas } }) {
    const { run, learnerPod } = observed;
    if (learnerReplicas === 0) context.links.drop(key);
    if (learnerReplicas === 0 || !learnerPod || !isLearnerUp(learnerPod)) return {};
    const instance = learnerPod.metadata.uid!;
    context.links.ensure(key, { uid: run.metadata.uid, serverName: learnerHost(run), instance });
    return {};
  },
};
