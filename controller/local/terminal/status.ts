/** Follows a learner's status stream, also across the learner's restarts. */
import { setTimeout as sleep } from "node:timers/promises";
import { clientCredentials } from "../../../proto/channel.ts";
import {
  clientOptions,
  LearnerStatusClient,
  messages,
  type PhaseName,
  type StatusReceived,
} from "../../../proto/service.ts";

export type { StatusReceived };

const RECONNECT_SECONDS = 0.5;
/** How often displayed counts change. */
const COUNTS_SECONDS = 0.2;

export function phaseName(status: StatusReceived): PhaseName {
  return messages.Phase[status.phase] as PhaseName;
}

/** Phases after which no further status follows. A stopped learner can be restarted. */
const FINAL_PHASES: readonly PhaseName[] = ["SUCCEEDED", "FAILED_RUN"];

export interface Watch {
  /** Stops reconnecting, and ends the open stream after at most `seconds`. */
  close(seconds: number): Promise<void>;
}

/**
 * Calls `onStatus` with the newest status and with each change. Reconnects until it is closed or the phase is final.
 *
 * @param tls folder with a certificate of role `controller`
 */
export function watchStatus(address: string, tls: string, onStatus: (status: StatusReceived) => void): Watch {
  const closing = new AbortController();
  let reconnecting = true;
  const watching = (async () => {
    const client = new LearnerStatusClient(address, clientCredentials(tls), clientOptions(address));
    try {
      while (reconnecting) {
        const phase = await watchOnce(client, onStatus, closing.signal);
        if (FINAL_PHASES.includes(phase) || !reconnecting) return;
        await sleep(RECONNECT_SECONDS * 1000, undefined, { signal: closing.signal }).catch(() => {});
      }
    } finally {
      client.close();
    }
  })();
  return {
    async close(seconds) {
      reconnecting = false;
      const timer = setTimeout(() => closing.abort(), seconds * 1000);
      await watching;
      clearTimeout(timer);
    },
  };
}

/** @returns the phase of the stream's last status; the stream ends when the learner does */
function watchOnce(
  client: LearnerStatusClient,
  onStatus: (status: StatusReceived) => void,
  signal: AbortSignal,
): Promise<PhaseName> {
  let last: PhaseName = "STARTING";
  const stream = client.watch({ intervalSeconds: COUNTS_SECONDS });
  const cancel = (): void => stream.cancel();
  signal.addEventListener("abort", cancel);
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener("abort", cancel);
      resolve(last);
    };
    stream.on("data", (status: StatusReceived) => {
      last = phaseName(status);
      onStatus(status);
    });
    // `end` and `error` both follow a cancelled or broken stream.
    stream.on("error", end);
    stream.on("end", end);
  });
}
