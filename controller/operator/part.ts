/**
 * The contract of a part: one concern of a run on Kubernetes, with its objects, its memory, its conditions and its piece of the status.
 *
 * In a reconcile (reconcile.ts) first all parts observe. Then each reconciles, in the order of parts/index.ts. Last, all report. A part
 * learns of earlier parts through `Done` alone: it names the fields that it needs and those that it gives.
 */
import type { TrainingRunStatus } from "../../crds/trainingrun.ts";
import type { Look } from "./context.ts";
import type { Run } from "./desired/names.ts";
import type { Settings } from "./desired/settings.ts";
import type { KubeObject, Resource } from "./kube/types.ts";
import type { ScalePlan } from "./parts/actors/scale.ts";
import type { NodeChoice, Workload } from "./parts/admission/desired.ts";
import type { Admission } from "./parts/admission/queue.ts";
import type { GenerationPlan } from "./parts/generators/generation.ts";
import type { Warning } from "./parts/learner/learner-state.ts";
import type { Derived } from "./parts/lifecycle/derived.ts";
import type { LifecyclePlan } from "./parts/lifecycle/lifecycle.ts";
import type { Finding, NewCondition } from "./status/conditions.ts";
import type { StepResult } from "./steps.ts";

/** What parts of this reconcile tell later parts; the comments name the parts that give it. */
export interface Done {
  /** admission */
  queue: Admission;
  /** admission: the desired Workload. Undefined: the run names no queue. */
  workload: Workload | undefined;
  /** admission: the nodes that Kueue chose; `of` names the admission. */
  flavors: { of: string; choices: Record<string, NodeChoice[]> } | undefined;
  /** admission: why the run cannot take Kueue's nodes. */
  unplaced: Finding | undefined;
  /** lifecycle */
  lifecycle: LifecyclePlan;
  derived: Derived;
  /** quota: whether no child may be written, because the Workload is refused. */
  held: boolean;
  /** quota: whether the run may have children now. */
  mayCreate: boolean;
  /** volume: name of the claim that the learner mounts. */
  claimName: string;
  /** certificates: whether the certificate authority is known to be right. */
  certified: boolean;
  /** actors */
  scale: ScalePlan;
  /** generators. Undefined: the run has and had no generators. */
  generation: GenerationPlan | undefined;
}

/** What reconcile.ts adds up. */
export interface Sum {
  /** Whether an object that the learner needs could not be applied: the learner is neither started nor changed. */
  failed: boolean;
  /** The first refusal that blocks the learner, and the first of an object that the learner does not need. */
  blocked: Finding | undefined;
  other: Finding | undefined;
}

export interface PartResult<Memory, Given = object> extends StepResult<Memory> {
  /** Fields of `Done`. */
  given?: Given;
  /** For children: see Sum. */
  failed?: boolean | undefined;
  other?: Finding | undefined;
  /** The TrainingRun itself was written, so what was observed is outdated: the reconcile ends. */
  stop?: boolean;
}

/** What a part found out before any part has reconciled. */
interface Observation<Memory, Facts> {
  facts: Facts;
  remember?: Partial<Memory>;
  againSeconds?: number | undefined;
}

/** An object that makes no progress and does not say why: Kubernetes' events about it may. */
export interface Stuck {
  subject: KubeObject | undefined;
  /** Whether an object may be stuck before long. */
  waiting: boolean;
}

/** What a part says about itself at the end of a reconcile. */
export interface Report {
  conditions?: NewCondition[];
  status?: Partial<TrainingRunStatus>;
  againSeconds?: number | undefined;
  /** Unix milliseconds at which each of its certificates must be renewed, and at which it expires. */
  certificates?: { renewAtMs: number; expireAtMs: number }[];
}

/** Why a part could not do its work: the API server's refusal, or a warning about its stuck object. */
export interface Trouble {
  refused: Finding | undefined;
  warning: Warning | undefined;
}

export interface Part<
  Memory extends object = object,
  Facts = unknown,
  Needs extends keyof Done = never,
  Gives extends keyof Done = never,
> {
  name: string;
  needs?: readonly Needs[];
  /** A part that gives something catches refusals itself: an error that it throws ends the reconcile. */
  gives?: readonly Gives[];
  /** Kinds of its objects, which the caches watch. */
  kinds?(settings: Pick<Settings, "kueue">): readonly Resource[];
  /** Returns the memory of a run that this process sees for the first time. */
  initial?(run: Run, nowMs: number): Memory;
  /** Makes no request. */
  observe?(look: Look<Memory>): Observation<Memory, Facts>;
  /** For a run that is being deleted. `againSeconds`: it must not be released before. */
  leave?(look: Look<Memory>): StepResult<Memory>;
  /** Whether a finished run must stay although its ttl is over. */
  owes?(look: Look<Memory>, facts: Facts): boolean;
  /** Reports what is lost when the finished run is deleted. */
  expire?(look: Look<Memory>, facts: Facts): void;
  /**
   * An object that the API server refuses does not keep other children from being tried: errors of a child are thrown when all children
   * were tried, and its refusal blocks the run.
   */
  isChild?: boolean;
  /** Writes its objects. @throws BlockedError | ApiError */
  reconcile?(
    look: Look<Memory>,
    facts: Facts,
    done: Pick<Done, Needs> & Sum,
  ): Promise<PartResult<Memory, Pick<Done, Gives>>>;
  stuck?(look: Look<Memory>, facts: Facts): Stuck;
  report?(look: Look<Memory>, facts: Facts, done: Done & Sum, trouble: Trouble): Report;
}

// biome-ignore lint/suspicious/noExplicitAny: each part has its own memory and facts, which nobody else reads
export type AnyPart = Part<any, any, any, any>;
