/**
 * A controller's claim on a run. Two controllers of one namespace would change a run's objects in turn. So the first one writes its name
 * into an annotation of the run. Another one leaves the run alone and writes its own name beside it, from which the first one makes a
 * condition. A claim passes on when its controller is gone: when nobody renews that controller's Lease.
 */
import type { Run } from "./desired/names.ts";
import { ApiError } from "./kube/errors.ts";
import { LEASE, type Lease, TRAINING_RUN } from "./kube/resources.ts";
import { condition, type NewCondition } from "./status/conditions.ts";
import type { Client, Writes } from "./writes/writes.ts";

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
/** The annotation of another controller is removed after this time. A controller that still serves the namespace writes it again. */
const CONTENDER_SECONDS = 600;

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

  /** Gives up a run that has another class now, or whose namespace has other labels. */
  async release(run: Run, writes: Writes): Promise<void> {
    const { identity } = this.#options;
    if (identity === undefined || run.metadata.annotations?.[CLAIM] !== identity) return;
    await writes.patch(TRAINING_RUN, run, { metadata: { annotations: { [CLAIM]: null } } });
  }

  /** @throws ApiError (409 if another controller was faster) */
  async take(run: Run, writes: Writes): Promise<Claimed> {
    const { identity, now } = this.#options;
    const { [CLAIM]: holder, [CONTENDER]: contender } = run.metadata.annotations ?? {};
    const write = async (annotations: Record<string, string | null>): Promise<"written"> => {
      await writes.patch(TRAINING_RUN, run, { metadata: { annotations } });
      return "written";
    };
    if (holder === identity) {
      const since = contender === undefined ? undefined : Date.parse(contender.split(" ")[1] ?? "");
      const isOld = since !== undefined && !(now() - since < CONTENDER_SECONDS * 1000);
      return isOld ? await write({ [CONTENDER]: null }) : "ours";
    }
    if (holder === undefined || (await this.#isGone(holder))) {
      if (identity === undefined) return "ours";
      return await write({ [CLAIM]: identity, [CONTENDER]: null });
    }
    if (contender === undefined)
      await write({ [CONTENDER]: `${identity ?? "without-a-Lease"} ${new Date(now()).toISOString()}` });
    return { leave: holder, first: contender === undefined, againSeconds: LOOK_SECONDS };
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

/** Returns the condition of a run whose namespace two controllers serve. */
export function contendedCondition({ metadata }: Run): NewCondition[] {
  const contender = metadata.annotations?.[CONTENDER]?.split(" ")[0];
  if (contender === undefined) return [];
  const holder = metadata.annotations?.[CLAIM];
  const message = `controller ${contender} serves this namespace too, and leaves the run to ${holder}: ${REMEDY}`;
  return [condition("Contended", true, { reason: "OtherController", message })];
}
