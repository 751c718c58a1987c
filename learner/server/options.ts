/** Options of a server. */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import type { ChannelLimits, SuspendResponseMessage } from "../../proto/service.ts";
import type { Store } from "../store/store.ts";
import type { SuspendRequest } from "./control.ts";
import type { StatusBoard } from "./status.ts";

/** Defaults of optional settings. */
export const DEFAULTS = {
  /** `learner.heartbeatSeconds` */
  heartbeatSeconds: 5,
  /** `actors.idleSeconds`: an actor without a lease for this long exits; 0 means never. */
  idleSeconds: 300,
  helloSeconds: 10,
  maxSlots: 256,
  /** Bytes of all unfinished submissions of one stream. A single one may always have its task's limit. */
  streamUploadBytes: 64 * 2 ** 20,
  /** Bytes of all unfinished submissions of all streams. */
  uploadBytes: 512 * 2 ** 20,
  /** A stream that sends more messages a second than this, on average over `floodSeconds`, is ended. */
  messagesPerSecond: 5000,
  floodSeconds: 10,
  /** Most streams of any kind on one connection. */
  maxStreams: 4096,
  closeSeconds: 1,
  tlsRefreshSeconds: 10,
  /** Python packages that programs were promised (`actors.packages`). An actor whose sandbox lacks one is refused. */
  packages: [] as readonly string[],
  channel: {} as Partial<ChannelLimits>,
};

export interface ServerOptions extends Partial<typeof DEFAULTS> {
  /** The store, after beginLineage. */
  store: Store;
  status: StatusBoard;
  /** `host:port`; port 0 takes a free one. */
  address: string;
  /** Folder with ca.crt, tls.crt, tls.key; see proto/certificates.ts. */
  tlsDirectory: string;
  limitsOf: (task: string) => Limits;
  log: Logger;
  /** Handles LearnerControl.Suspend. @throws ServerError `stopped` if the run cannot be suspended */
  suspend: (request: SuspendRequest) => Promise<SuspendResponseMessage>;
  /** How often the server checks leases and silent streams. [at most 1, well below leaseSeconds] */
  tickSeconds?: number;
}
