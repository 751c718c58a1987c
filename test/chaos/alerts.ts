/**
 * Judges the alerts of a run. The chart's rules fired them with divided durations (`alert-rules.ts`). Each alert is compared with facts
 * about the cluster that were observed once a second (`alert-watch.ts`), never with metrics.
 */
import { FACTOR } from "./alert-rules.ts";

/** How long the controller may take to notice a change: WRITE_SECONDS of truth.ts. */
export const LAG_SECONDS = 45;
/** Longest time until a scrape shows a change that a part measures, or a new leader: a Lease is valid for 15 s after its renewal. */
const SOON_SECONDS = 25;
const NO_PROGRESS_SECONDS = 3600 / FACTOR;

/** Facts about the cluster at one time; undefined where they could not be observed. */
export interface Facts {
  atMs: number;
  /** Troubles that are under way, or whose effects may last, each with its target. */
  troubles: string[];
  /** The pod that holds the Lease; empty: no pod does. */
  leader?: string;
  learner?: {
    /** The pod's name; empty: there is none. */
    name: string;
    ready: boolean;
    /** Whether the run should have one. */
    due: boolean;
    /** Ends of its container since the newest iteration, with LAG_SECONDS before it. */
    ends: number;
  };
  /** Pods that are not being deleted, and the run's `actors.max`. */
  actors?: { pending: number; running: number; max: number };
  /** Share of the volume that is free. */
  free?: number;
  sinceIterationSeconds?: number;
}

interface Judged {
  /** Returns whether the alert's condition held; undefined: the facts do not say. */
  so(facts: Facts): boolean | undefined;
  /** The part whose metrics the alert uses. Times at which it could not be scraped do not count. */
  by: "leader" | "learner";
  lagSeconds: number;
  /** Troubles under which the condition may hold although the facts deny it (`so`), or may fail although they confirm it (`not`). */
  hides?: { so?: RegExp; not?: RegExp };
}

/** The controller does not see the cluster as it is. */
const BLIND = /^(watches stall|old reads|network cut (controller|node) - API server)/;

const JUDGED: Record<string, Judged> = {
  LongrunNoLeader: {
    ...{ by: "leader", lagSeconds: SOON_SECONDS },
    so: ({ leader }) => (leader === undefined ? undefined : leader === ""),
    // Prometheus finds new pods by the API server.
    hides: { so: /^(API server restarts|etcd restarts|network cut node - API server)/ },
  },
  LongrunLearnerDown: {
    ...{ by: "leader", lagSeconds: LAG_SECONDS },
    so: ({ learner }) => learner?.due && !learner.ready,
    hides: {
      // It is ready, and the controller does not reach it.
      so: /^(network cut controller - learner|child (deleted|edited): (services|secrets))/,
      // The run was resumed, and the controller does not know.
      not: /^(watches stall|old reads)/,
    },
  },
  LongrunLearnerFailing: {
    ...{ by: "leader", lagSeconds: LAG_SECONDS },
    // Ends that no controller saw one by one count once: more ends do not make it so.
    so: ({ learner }) => (learner && learner.ends < 3 ? false : undefined),
  },
  LongrunActorsStuck: {
    ...{ by: "leader", lagSeconds: LAG_SECONDS },
    // With fewer pods the facts do not show how many the controller wants.
    so: ({ actors }) => actors && (actors.pending > 0 || (actors.running >= actors.max ? false : undefined)),
    hides: { so: BLIND, not: BLIND },
  },
  LongrunNoProgress: {
    ...{ by: "learner", lagSeconds: SOON_SECONDS },
    // There may be progress even if no iteration ends.
    so: ({ sinceIterationSeconds: since }) => (since !== undefined && since < NO_PROGRESS_SECONDS ? false : undefined),
  },
  LongrunDiskNearlyFull: {
    ...{ by: "learner", lagSeconds: SOON_SECONDS },
    so: ({ free }) => (free === undefined ? undefined : free < 0.1),
  },
};

/** Alerts whose condition the facts do not show, with the troubles that explain them. */
const EXPLAINED: Record<string, RegExp> = {
  LongrunReconcileErrors: /^(API server|etcd|old reads|network cut (controller|node) - API|watches)/,
  LongrunExecutionsLost: /(actor|sandbox|learner|node|child|image)/,
};
/** Alerts that are not judged: with batches of four samples chance decides them, not a trouble. */
export const LEFT_OUT = [
  "LongrunMarkersForged",
  "LongrunValidFractionCollapsed",
  "LongrunPolicyDiverged",
  "LongrunEntropyCollapsed",
];

export interface Firing {
  alert: string;
  fromMs: number;
  toMs: number;
}

/**
 * @param facts in the order of time
 * @param waits seconds that each alert waits, by its name
 * @param isScraped whether a pod could be scraped at a time
 * @returns what is wrong, and how many alerts had to fire
 */
export function judge(
  facts: readonly Facts[],
  firings: readonly Firing[],
  waits: Record<string, number>,
  isScraped: (pod: string, atMs: number) => boolean,
): { findings: string[]; due: number } {
  const findings: string[] = [];
  const time = (ms: number) => new Date(ms).toISOString().slice(11, 19);
  const during = (fromMs: number, toMs: number) => facts.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs);
  for (const { alert, fromMs, toMs } of firings) {
    const waited = during(fromMs - waits[alert]! * 1000, toMs);
    const judged = JUDGED[alert];
    const when = `${alert} fired from ${time(fromMs)} to ${time(toMs)}`;
    if (judged) {
      const not = stretches(waited, judged, isScraped).find((it) => it.so === false && it.seconds > judged.lagSeconds);
      if (not)
        findings.push(
          `false alert: ${when}, but its condition did not hold for ${not.seconds} s from ${time(not.fromMs)}`,
        );
    } else if (!LEFT_OUT.includes(alert)) {
      const explains = EXPLAINED[alert];
      const troubles = waited.flatMap((it) => it.troubles);
      if (!explains || !troubles.some((trouble) => explains.test(trouble)))
        findings.push(`false alert: ${when}, and no trouble explains it`);
    }
  }
  let due = 0;
  for (const [alert, judged] of Object.entries(JUDGED))
    for (const { so, fromMs, seconds } of stretches(facts, judged, isScraped)) {
      if (!so || seconds <= waits[alert]! + judged.lagSeconds) continue;
      due++;
      const toMs = fromMs + seconds * 1000;
      const fired = firings.some((it) => it.alert === alert && it.fromMs <= toMs && it.toMs >= fromMs);
      if (!fired)
        findings.push(
          `missing alert: ${alert} did not fire, although its condition held for ${seconds} s from ${time(fromMs)}`,
        );
    }
  return { findings, due };
}

interface Stretch {
  so: boolean | undefined;
  fromMs: number;
  seconds: number;
}

/** Returns the periods during which the condition held, or did not hold, each for one pod that could be scraped. */
function stretches(
  facts: readonly Facts[],
  { so, by, hides }: Judged,
  isScraped: (pod: string, atMs: number) => boolean,
): Stretch[] {
  const found: (Stretch & { pod: string })[] = [];
  for (const [index, it] of facts.entries()) {
    const pod = (by === "leader" ? it.leader : it.learner?.name) ?? "";
    const isSeen = pod === "" ? by === "leader" : isScraped(pod, it.atMs);
    const fact = isSeen ? so(it) : undefined;
    const hidden = fact === undefined ? undefined : fact ? hides?.not : hides?.so;
    const value = it.troubles.some((name) => hidden?.test(name)) ? undefined : fact;
    const last = found.at(-1);
    const isNext = index > 0 && it.atMs - facts[index - 1]!.atMs < 5000;
    if (last && isNext && last.so === value && last.pod === pod)
      last.seconds = Math.round((it.atMs - last.fromMs) / 1000);
    else found.push({ so: value, fromMs: it.atMs, seconds: 0, pod });
  }
  return found;
}
