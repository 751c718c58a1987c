/** The actor's one stream to the learner, from Hello to its end. It is dialled again until the learner answers. */
import { setTimeout as sleep } from "node:timers/promises";
import { status as Status } from "@grpc/grpc-js";
import { clientCredentials } from "../proto/channel.ts";
import {
  ActorProtocolClient,
  type ChannelLimits,
  clientOptions,
  type FromActorMessage,
  type FromLearnerReceived,
  type longrun,
  PROTOCOL_VERSION,
} from "../proto/service.ts";
import { ActorError } from "./errors.ts";
import type { Stream } from "./hand-in.ts";
import type { Attempt } from "./lease.ts";

/** How long the learner may take to answer Hello. */
const WELCOME_SECONDS = 15;

export interface LearnerStreamOptions {
  /** `host:port` of the learner. */
  address: string;
  /** Folder with ca.crt, tls.crt, tls.key. */
  tlsDirectory: string;
  name: string;
  slots: number;
  isolationLevel: string;
  /** Isolation layers that this machine lacks, for the learner's metrics. */
  isolationMissing?: string[];
  pythonDigest?: string;
  versions?: Record<string, string>;
  /** Versions of all that programs can import, by normalized name. */
  packages?: Record<string, string>;
  log?: { info: LogMethod; warn: LogMethod };
  channel?: Partial<ChannelLimits>;
  /** Longest pause before the next dial. Pauses double up to it, and each is shortened at random. */
  maxReconnectSeconds?: number;
  random?: () => number;
  /**
   * After this time the actor gives up if the learner's name does not resolve and no learner has welcomed it yet, so that its pod's end says why.
   * Absent: it dials for ever.
   */
  nameSeconds?: number | undefined;
}

/** What the stream asks of its owner, and the events that it reports. */
interface LearnerStreamEnds {
  /** Returns the attempts for Hello: running ones, and finished ones without an acknowledgement. */
  holding(): Attempt[];
  heartbeat(): longrun.v1alpha1.Heartbeat.$Properties;
  onWelcome(welcome: longrun.v1alpha1.Welcome.$Properties): void;
  /** Called with every message except the welcome. */
  onMessage(message: FromLearnerReceived): void;
  /** Called when a stream that was welcomed has ended. */
  onEnd(): void;
}

type LogMethod = (fields: object, message: string) => void;

const SHORTEST_PAUSE_SECONDS = 0.2;
const DEFAULT_HEARTBEAT_SECONDS = 5;
const SHORTEST_HEARTBEAT_SECONDS = 0.05;
const LONGEST_HEARTBEAT_SECONDS = 3600;
/** Longest text of the learner in a log line, in characters. */
export const LONGEST_SAID = 200;
/** Statuses that no retry can change. */
const FINAL_STATUSES = new Set([Status.UNAUTHENTICATED, Status.PERMISSION_DENIED, Status.UNIMPLEMENTED]);
/** Also final as an answer to Hello: the learner speaks another version, or rejects this actor. */
const FINAL_BEFORE_WELCOME = new Set([Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]);

/** What gRPC says if it cannot resolve a name. */
const UNRESOLVED = /Name resolution failed/;

export class LearnerStream {
  readonly #options: LearnerStreamOptions;
  readonly #ends: LearnerStreamEnds;
  #call: Stream | undefined;
  #cutOffSince: number | undefined = performance.now();
  #broken = 0;
  readonly #closed = new AbortController();

  constructor(options: LearnerStreamOptions, ends: LearnerStreamEnds) {
    this.#options = options;
    this.#ends = ends;
  }

  /** Returns the stream once the learner has welcomed this actor. */
  get call(): Stream | undefined {
    return this.#call;
  }

  get isConnected(): boolean {
    return this.#call !== undefined;
  }

  /** Returns when the connection was lost, by performance.now(), or undefined while connected. */
  get cutOffSince(): number | undefined {
    return this.#cutOffSince;
  }

  /** Returns how many streams broke after the learner's welcome. */
  get broken(): number {
    return this.#broken;
  }

  /** Sends the message if a stream is open. */
  send(message: FromActorMessage): void {
    this.#call?.write(message);
  }

  /** Ends the stream and dials no more. */
  close(): void {
    this.#closed.abort();
    this.#call?.cancel();
  }

  /** Dials until it is closed. @throws ActorError `refused` or `packages` if the learner turns the actor away, `names` after nameSeconds */
  async dialForEver(): Promise<void> {
    const {
      maxReconnectSeconds = 5,
      random = Math.random,
      log,
      nameSeconds = Number.POSITIVE_INFINITY,
    } = this.#options;
    const { signal } = this.#closed;
    let [wasWelcomed, resolvedAt] = [false, performance.now()];
    for (let failures = 0; !signal.aborted; ) {
      const { code, details, welcomed, seconds: lasted } = await this.#dial();
      if (signal.aborted) return;
      wasWelcomed ||= welcomed;
      if (wasWelcomed || !UNRESOLVED.test(details)) resolvedAt = performance.now();
      if (performance.now() - resolvedAt >= nameSeconds * 1000)
        throw new ActorError(
          "names",
          `the learner's name has not resolved for ${nameSeconds} s (${details.slice(0, LONGEST_SAID)})`,
        );
      if (welcomed) this.#broken++;
      if (FINAL_STATUSES.has(code) || (!welcomed && FINAL_BEFORE_WELCOME.has(code)))
        throw new ActorError(
          code === Status.FAILED_PRECONDITION ? "packages" : "refused",
          `the learner refused this actor: ${details.slice(0, 5 * LONGEST_SAID)}`,
        );
      // A learner that welcomes the actor and hangs up at once counts as a failure, too.
      failures = welcomed && lasted >= maxReconnectSeconds ? 0 : failures + 1;
      const longest = Math.min(maxReconnectSeconds, SHORTEST_PAUSE_SECONDS * 2 ** Math.min(failures, 16));
      const seconds = longest * (0.5 + 0.5 * random());
      // Log the first failures, then only powers of two.
      if (failures < 3 || Number.isInteger(Math.log2(failures)))
        log?.warn(
          { code: Status[code], details: details.slice(0, LONGEST_SAID), held: this.#ends.holding().length, seconds },
          "the stream to the learner broke",
        );
      await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
    }
  }

  /** Opens one stream and waits for its end. */
  async #dial(): Promise<{ code: Status; details: string; welcomed: boolean; seconds: number }> {
    const { address, tlsDirectory, name, slots, isolationLevel, isolationMissing } = this.#options;
    const { pythonDigest, versions, packages, channel } = this.#options;
    // A new client each time, so that gRPC adds no backoff of its own and renewed certificates are read.
    const client = new ActorProtocolClient(address, clientCredentials(tlsDirectory), clientOptions(address, channel));
    const call = client.work();
    call.setMaxListeners(0); // each upload waits for it
    const startedAt = performance.now();
    let heartbeat: NodeJS.Timeout | undefined;
    const welcomeDue = setTimeout(() => call.cancel(), WELCOME_SECONDS * 1000);
    try {
      return await new Promise((resolve) => {
        let welcomed = false;
        call.on("error", () => {}); // `status` reports the error
        call.on("status", ({ code, details }) =>
          resolve({ code, details, welcomed, seconds: (performance.now() - startedAt) / 1000 }),
        );
        call.on("data", (message: FromLearnerReceived) => {
          if (message.message === "welcome" && !welcomed) {
            welcomed = true;
            clearTimeout(welcomeDue);
            this.#call = call;
            this.#cutOffSince = undefined;
            heartbeat = this.#startHeartbeats(call, message.welcome.heartbeatSeconds);
            this.#ends.onWelcome(message.welcome);
          } else if (welcomed) this.#ends.onMessage(message);
        });
        const hello = { actor: name, slots, isolationLevel, isolationMissing, pythonDigest, versions, packages };
        const holding = this.#ends.holding();
        call.write({ hello: { protocolVersion: PROTOCOL_VERSION, capabilities: ["zlib"], ...hello, holding } });
      });
    } finally {
      clearTimeout(welcomeDue);
      clearInterval(heartbeat);
      if (this.#call === call) {
        this.#call = undefined;
        this.#cutOffSince = performance.now();
        this.#ends.onEnd();
      }
      client.close();
    }
  }

  #startHeartbeats(call: Stream, asked: number | null | undefined): NodeJS.Timeout {
    const seconds = asked && asked > 0 ? asked : DEFAULT_HEARTBEAT_SECONDS;
    let waits = false; // a learner that does not read gets one heartbeat to read, not all
    const beat = () => {
      if (waits) return;
      waits = true;
      call.write({ heartbeat: this.#ends.heartbeat() }, () => {
        waits = false;
      });
    };
    const between = Math.min(Math.max(seconds, SHORTEST_HEARTBEAT_SECONDS), LONGEST_HEARTBEAT_SECONDS);
    return setInterval(beat, between * 1000);
  }
}
