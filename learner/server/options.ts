/** What a server is started with. */
import type { Logger } from "pino";
import type { Limits } from "../../proto/execution.ts";
import type { ChannelLimits, SuspendResponseMessage } from "../../proto/service.ts";
import type { Store } from "../store/store.ts";
import type { SuspendRequest } from "./control.ts";
import type { StatusBoard } from "./status.ts";

/** Settings that the caller may leave out. */
export const DEFAULTS = {
  /** `learner.heartbeatSeconds` */
  heartbeatSeconds: 5,
  /** `actors.idleSeconds`: an actor without a lease for this long exits; 0 is never. */
  idleSeconds: 300,
  helloSeconds: 10,
  maxSlots: 256,
  /** Bytes of all unfinished submissions of one stream; a single one may have its task's limit. */
  streamUploadBytes: 64 * 2 ** 20,
  /** The same for all streams together. */
  uploadBytes: 512 * 2 ** 20,
  /** A stream that sends more messages a second than this, for `floodSeconds` on average, is ended. */
  messagesPerSecond: 5000,
  floodSeconds: 10,
  /** Streams at once, of any kind, on one connection. */
  maxStreams: 4096,
  closeSeconds: 1,
  tlsRefreshSeconds: 10,
  /** Python packages that programs were promised (`actors.packages`): an actor whose sandbox lacks one is refused. */
  packages: [] as readonly string[],
  channel: {} as Partial<ChannelLimits>,
};

export interface ServerOptions extends Partial<typeof DEFAULTS> {
  /** After beginLineage. */
  store: Store;
  status: StatusBoard;
  /** `host:port`; port 0 takes a free one. */
  address: string;
  /** Folder with ca.crt, tls.crt, tls.key; see proto/certificates.ts. */
  tlsDirectory: string;
  limitsOf: (task: string) => Limits;
  log: Logger;
  /** What LearnerControl.Suspend does. @throws ServerError `stopped` if the run cannot be suspended */
  suspend: (request: SuspendRequest) => Promise<SuspendResponseMessage>;
  /** How often the server looks at leases and silent streams. [at most 1, well below leaseSeconds] */
  tickSeconds?: number;
}
