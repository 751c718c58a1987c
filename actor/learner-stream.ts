/** The actor's one stream to the learner: dialled again for as long as it takes, from Hello to its end. */
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

export interface LearnerStreamOptions {
  /** `host:port` of the learner. */
  address: string;
  /** Folder with ca.crt, tls.crt, tls.key. */
  tlsDirectory: string;
  name: string;
  slots: number;
  isolationLevel: string;
  /** Layers that this machine does not have: for the learner's metrics. */
  isolationMissing?: string[];
  pythonDigest?: string;
  versions?: Record<string, string>;
  /** Versions of all that programs can import, by normalized name. */
  packages?: Record<string, string>;
  log?: { info: LogMethod; warn: LogMethod };
  channel?: Partial<ChannelLimits>;
  /** Longest pause before dialling again; the pauses double up to it, each shortened by chance. */
  maxReconnectSeconds?: number;
  /** How long the learner may take to answer Hello. */
  welcomeSeconds?: number;
  random?: () => number;
}

/** What is sent over the stream by itself, and what comes. */
export interface LearnerStreamEnds {
  /** Attempts that run here, or finished here without an acknowledgement: for Hello. */
  holding(): Attempt[];
  heartbeat(): longrun.v1alpha1.Heartbeat.$Properties;
  onWelcome(welcome: longrun.v1alpha1.Welcome.$Properties): void;
  /** Another message than the welcome. */
  onMessage(message: FromLearnerReceived): void;
  /** A stream that was welcomed is over. */
  onEnd(): void;
}

type LogMethod = (fields: object, message: string) => void;

const SHORTEST_PAUSE_SECONDS = 0.2;
const DEFAULT_HEARTBEAT_SECONDS = 5;
const SHORTEST_HEARTBEAT_SECONDS = 0.05;
const LONGEST_HEARTBEAT_SECONDS = 3600;
/** Of what the learner says, in a line of the log. */
export const LONGEST_SAID = 200;
/** Statuses that another try cannot mend. */
const FINAL_STATUSES = new Set([Status.UNAUTHENTICATED, Status.PERMISSION_DENIED, Status.UNIMPLEMENTED]);
/** Final as well if the learner answers Hello with it: it speaks another version, or does not take this actor. */
const FINAL_BEFORE_WELCOME = new Set([Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION]);

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

  /** The stream, once the learner has welcomed this actor. */
  get call(): Stream | undefined {
    return this.#call;
  }

  get isConnected(): boolean {
    return this.#call !== undefined;
  }

  /** Since when it is not connected, by performance.now(); undefined while it is. */
  get cutOffSince(): number | undefined {
    return this.#cutOffSince;
  }

  /** Streams that broke after the learner's welcome. */
  get broken(): number {
    return this.#broken;
  }

  /** Sends the message if the stream is there. */
  send(message: FromActorMessage): void {
    this.#call?.write(message);
  }

  /** Dials no more, and ends the stream. */
  close(): void {
    this.#closed.abort();
    this.#call?.cancel();
  }

  /** Dials again and again until it is closed. @throws ActorError `refused` or `packages` if the learner turns the actor away */
  async dialForEver(): Promise<void> {
    const { maxReconnectSeconds = 5, random = Math.random, log } = this.#options;
    const { signal } = this.#closed;
    for (let failures = 0; !signal.aborted; ) {
      const { code, details, welcomed, seconds: lasted } = await this.#dial();
      if (signal.aborted) return;
      if (welcomed) this.#broken++;
      if (FINAL_STATUSES.has(code) || (!welcomed && FINAL_BEFORE_WELCOME.has(code)))
        throw new ActorError(
          code === Status.FAILED_PRECONDITION ? "packages" : "refused",
          `the learner refused this actor: ${details.slice(0, 5 * LONGEST_SAID)}`,
        );
      // One that welcomes us and hangs up at once is no better than one that is not there.
      failures = welcomed && lasted >= maxReconnectSeconds ? 0 : failures + 1;
      const longest = Math.min(maxReconnectSeconds, SHORTEST_PAUSE_SECONDS * 2 ** Math.min(failures, 16));
      const seconds = longest * (0.5 + 0.5 * random());
      // Many failures in a row are one piece of news.
      if (failures < 3 || Number.isInteger(Math.log2(failures)))
        log?.warn(
          { code: Status[code], details: details.slice(0, LONGEST_SAID), held: this.#ends.holding().length, seconds },
          "the stream to the learner broke",
        );
      await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
    }
  }

  /** One stream, from Hello to its end. */
  async #dial(): Promise<{ code: Status; details: string; welcomed: boolean; seconds: number }> {
    const { address, tlsDirectory, name, slots, isolationLevel, isolationMissing } = this.#options;
    const { pythonDigest, versions, packages, channel, welcomeSeconds = 15 } = this.#options;
    // A client of its own each time: no backoff but ours, and certificates that were renewed are read again.
    const client = new ActorProtocolClient(address, clientCredentials(tlsDirectory), clientOptions(address, channel));
    const call = client.work();
    call.setMaxListeners(0); // each upload waits for it
    const startedAt = performance.now();
    let heartbeat: NodeJS.Timeout | undefined;
    const welcomeDue = setTimeout(() => call.cancel(), welcomeSeconds * 1000);
    try {
      return await new Promise((resolve) => {
        let welcomed = false;
        call.on("error", () => {}); // told by `status`
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
    let waits = false; // a learner that does not read has one to read, not all
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
