/** The parts of a node that troubles strike, and their shared state. */
import { setTimeout as sleep } from "node:timers/promises";
import type { TestCluster } from "../cluster/node.ts";
import type { Helm } from "../e2e/helm.ts";
import type { ApiProxy } from "../faults/api-proxy.ts";
import type { ClusterApi } from "./cluster-api.ts";
import type { Random } from "./trouble.ts";

/** The parts that troubles strike. */
export interface Place {
  cluster: TestCluster;
  api: ClusterApi;
  /** Between the controllers and the API server. */
  proxy: ApiProxy;
  /** The controllers' release. */
  helm: Helm;
  /** The run. */
  run: string;
  /** Its volume, as the node sees it. */
  volume: string;
  /** Whether the run has generators. */
  generates: boolean;
}

/** Causes a trouble and ends it. @returns the target; undefined if there was none */
export type Strike = (place: Place, random: Random) => Promise<string | undefined>;

/** Longest wait for the API server to answer, where the end of a trouble needs it. */
const MEND_SECONDS = 120;

/** Ends a trouble: repeats `what` until it succeeds. @throws the last error after MEND_SECONDS */
export async function mend(what: () => Promise<unknown>): Promise<void> {
  for (const endMs = Date.now() + MEND_SECONDS * 1000; ; await sleep(500)) {
    try {
      return void (await what());
    } catch (error) {
      if (Date.now() > endMs) throw error;
    }
  }
}

/** Waits for a random number of seconds. @returns the number, as text */
export const between = async (random: Random, least: number, most: number): Promise<string> => {
  const seconds = random.between(least, most);
  await sleep(seconds * 1000);
  return `${seconds.toFixed(1)} s`;
};
