/** What a server is started with. */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import type { ChannelLimits, SuspendResponseMessage } from "../../proto/service.ts";
import type { Store } from "../store/store.ts";
import type { SuspendRequest } from "./control.ts";
import type { StatusBoard } from "./status.ts";

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
  /** How often the server looks for changed certificates. */
  tlsRefreshSeconds?: number;
  /** `learner.heartbeatSeconds` */
  heartbeatSeconds?: number;
  /** `actors.idleSeconds`: an actor without a lease for this long exits; 0 is never. */
  idleSeconds?: number;
  /** An actor must send its Hello within this time. */
  helloSeconds?: number;
  /** Slots of one actor, at most. */
  maxSlots?: number;
  /** Bytes of all unfinished submissions of one stream; a single one may have its task's limit. */
  streamUploadBytes?: number;
  /** The same for all streams together. */
  uploadBytes?: number;
  /** A stream that sends more messages a second than this, for `floodSeconds` on average, is ended. */
  messagesPerSecond?: number;
  floodSeconds?: number;
  /** Streams at once, of any kind, on one connection. */
  maxStreams?: number;
  /** How often the server looks at leases and silent streams. [at most 1, well below leaseSeconds] */
  tickSeconds?: number;
  /** How long `close` waits until messages are sent. */
  closeSeconds?: number;
  channel?: Partial<ChannelLimits>;
}
