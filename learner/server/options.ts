/** What a server is started with, and what it says of an actor. */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import type { ChannelLimits, SuspendResponseMessage } from "../../proto/service.ts";
import type { Store } from "../store/store.ts";
import type { SuspendRequest } from "./control.ts";
import type { StatusBoard } from "./status.ts";
import type { ActorView } from "./waiting.ts";

export interface ServerOptions {
  /** After beginLineage. */
  store: Store;
  status: StatusBoard;
  /** `host:port`; port 0 takes a free one. */
  address: string;
  /** Folder with ca.crt, tls.crt, tls.key; see proto/certificates.ts. */
  tlsDirectory: string;
  /** The limits of a task's executions. */
  limitsOf: (task: string) => Limits;
  /** Python packages that programs were promised (`actors.packages`): an actor whose sandbox lacks one is refused. */
  packages?: readonly string[];
  log: Logger;
  /** What LearnerControl.Suspend does. @throws ServerError `stopped` if the run cannot be suspended */
  suspend: (request: SuspendRequest) => Promise<SuspendResponseMessage>;
  /** How often changed certificates are looked for. */
  tlsRefreshSeconds?: number;
  /** `learner.heartbeatSeconds` */
  heartbeatSeconds?: number;
  /** `actors.idleSeconds`: an actor without a lease for this long exits; 0 is never. */
  idleSeconds?: number;
  /** An actor must introduce itself within this time. */
  helloSeconds?: number;
  /** Per actor. */
  maxSlots?: number;
  /** Bytes that unfinished submissions of one stream may hold together; one that is alone may have its task's limit. */
  streamUploadBytes?: number;
  /** The same of all streams together. */
  uploadBytes?: number;
  /** A stream that sends more messages a second than this, for `floodSeconds` on average, is ended. */
  messagesPerSecond?: number;
  floodSeconds?: number;
  /** Streams at once, of any kind, on one connection. */
  maxStreams?: number;
  /** How often leases and silent streams are looked at. [at most 1, well below leaseSeconds] */
  tickSeconds?: number;
  /** How long `close` waits for what is being sent. */
  closeSeconds?: number;
  channel?: Partial<ChannelLimits>;
}

export interface ActorState extends ActorView {
  isolationLevel: string;
  /** Layers of isolation that its machine does not have. */
  isolationMissing: string[];
  /** Of Python and its packages. */
  versions: Record<string, string>;
  busySeconds: number;
  aliveSeconds: number;
}
