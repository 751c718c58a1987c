/**
 * A controller's claim on a run. Two controllers of one namespace would change a run's objects in turn. So the first one writes its name
 * into an annotation of the run. Another one leaves the run alone and writes its own name beside it, from which the first one makes a
 * condition. A claim passes on when its controller is gone: when nobody renews that controller's Lease.
 */
import type { Run } from "../desired/names.ts";
import { ApiError } from "../kube/errors.ts";
import { LEASE, type Lease, TRAINING_RUN } from "../kube/resources.ts";
import { condition, type NewCondition } from "../status/conditions.ts";
import type { Client, Writes } from "../writes/writes.ts";

/** Name of every controller's Lease. */
export const LEASE_NAME = "longrun-controller";
/** Annotation of a run: the namespace and the name of the Lease of the controller that reconciles it. */
export const CLAIM = "longrun.dev/controller";
/** Annotation of a run: another controller that serves its namespace, and when it wrote this (RFC 3339). */
export const CONTENDER = "longrun.dev/other-controller";
/** A controller whose Lease was not renewed for this long is gone. */
const GONE_SECONDS = 300;
/** Time between two looks at a run of another controller, and at that controller's Lease. */
const LOOK_SECONDS = 60;
/** The annotation of another controller is removed this long after its last word. */
const CONTENDER_SECONDS = 600;
/** A controller that still serves the namespace renews its annotation after this time, so that the condition stays. */
const RENEW_SECONDS = CONTENDER_SECONDS / 2;

interface ClaimsOptions {
  client: Pick<Client, "get">;
  /** Namespace and name of this controller's Lease. Undefined: it runs alone, without a Lease, and claims nothing. */
  identity: string | undefined;
  /** Runs of this class only. Undefined: runs without a class. */
  controllerClass?: string | undefined;
  /** Returns whether a namespace is served. Absent: each that the caches follow. */
  serves?: ((namespace: string) => boolean) | undefined;
  /** [300] */
  goneSeconds?: number | undefined;
  now: () => number;
}

/** `ours`: reconcile it. `written`: the run was written, and the cache will tell. Otherwise: leave it alone; `first`: it was not known that both serve it. */
type Claimed = "ours" | "written" | { leave: string; first: boolean; againSeconds: number };

export class Claims {
  readonly #options: ClaimsOptions;
  /** {controller: whether it was gone, and when this was read} */
  readonly #seen = new Map<string, { gone: boolean; atMs: number }>();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /** Returns whether a run has the class of this controller, and a namespace that it serves. */
  serves({ spec, metadata }: Run): boolean {
    const { controllerClass, serves = () => true } = this.#options;
    return spec.controllerClass === (controllerClass || undefined) && serves(metadata.namespace);
  }

  /**
   * Gives up a run that has another class now, or whose namespace has other labels.
   *
   * @param finalizer goes with the claim: perhaps nobody serves the run from now on, and nobody would remove it
   */
  async release(run: Run, writes: Writes, finalizer: string): Promise<void> {
    const { identity } = this.#options;
    const { annotations, finalizers = [] } = run.metadata;
    if (identity === undefined || annotations?.[CLAIM] !== identity) return;
    const rest = finalizers.includes(finalizer) && { finalizers: finalizers.filter((it) => it !== finalizer) };
    await writes.patch(TRAINING_RUN, run, { metadata: { annotations: { [CLAIM]: null }, ...rest } });
  }

  /** @throws ApiError (409 if another controller was faster) */
  async take(run: Run, writes: Writes): Promise<Claimed> {
    const { identity, now } = this.#options;
    const { [CLAIM]: holder } = run.metadata.annotations ?? {};
    const contender = contenderOf(run);
    const write = async (annotations: Record<string, string | null>): Promise<"written"> => {
      await writes.patch(TRAINING_RUN, run, { metadata: { annotations } });
      return "written";
    };
    if (holder === identity)
      return contender && now() >= contender.untilMs ? await write({ [CONTENDER]: null }) : "ours";
    if (holder === undefined || (await this.#isGone(holder))) {
      if (identity === undefined) return contender ? await write({ [CONTENDER]: null }) : "ours";
      return await write({ [CLAIM]: identity, [CONTENDER]: null });
    }
    const own = identity ?? "without-a-Lease";
    const isDue = contender?.name === own && now() >= contender.untilMs - RENEW_SECONDS * 1000;
    if (!contender || isDue) await write({ [CONTENDER]: `${own} ${new Date(now()).toISOString()}` });
    return { leave: holder, first: !contender, againSeconds: LOOK_SECONDS };
  }

  async #isGone(controller: string): Promise<boolean> {
    const { client, goneSeconds = GONE_SECONDS, now } = this.#options;
    const known = this.#seen.get(controller);
    if (known && now() - known.atMs < Math.min(LOOK_SECONDS, goneSeconds) * 1000) return known.gone;
    const [namespace = "", name, ...rest] = controller.split("/");
    // A person may have written anything.
    if (namespace === "" || name !== LEASE_NAME || rest.length > 0) return true;
    const lease = await client.get<Lease>(LEASE, { namespace, name }).catch((error: unknown) => {
      // A controller with rights in some namespaces alone cannot know.
      if (error instanceof ApiError && error.status === 403) return "unknown" as const;
      throw error;
    });
    const renewedMs = lease === "unknown" ? now() : Date.parse(lease?.spec?.renewTime ?? "") || 0;
    const gone = now() - renewedMs > goneSeconds * 1000;
    this.#seen.set(controller, { gone, atMs: now() });
    return gone;
  }
}

/** What resolves a contention, for people. */
const REMEDY =
  "give one of them other namespaces (--namespace, --namespace-selector), or a class (--controller-class, spec.controllerClass)";

/** Returns the text of the event by which the other controller says that it leaves a run alone. */
export function leftAlone(holder: string): string {
  return `controller ${holder} reconciles this run, so this controller leaves it alone; ${REMEDY}. If ${holder} is gone for good, kubectl annotate trun NAME ${CLAIM}-`;
}

/** Returns the other controller that serves the run's namespace, and when its word is too old, in Unix milliseconds. */
function contenderOf({ metadata }: Run): { name: string; untilMs: number } | undefined {
  const [name, time = ""] = metadata.annotations?.[CONTENDER]?.split(" ") ?? [];
  if (name === undefined) return undefined;
  return { name, untilMs: (Date.parse(time) || 0) + CONTENDER_SECONDS * 1000 };
}

/** Returns the seconds until the word of the other controller is too old; undefined if there is none, or if it is too old. */
export function contendedSeconds(run: Run, nowMs: number): number | undefined {
  const { untilMs = 0 } = contenderOf(run) ?? {};
  return untilMs > nowMs ? (untilMs - nowMs) / 1000 : undefined;
}

/** Returns the condition of a run whose namespace two controllers serve. */
export function contendedCondition(run: Run): NewCondition[] {
  const contender = contenderOf(run);
  if (!contender) return [];
  const holder = run.metadata.annotations?.[CLAIM];
  const message = `controller ${contender.name} serves this namespace too, and leaves the run to ${holder}: ${REMEDY}`;
  return [condition("Contended", true, { reason: "OtherController", message })];
}
