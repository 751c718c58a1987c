/**
 * The learner's current status and whoever watches it (LearnerStatus.Watch).
 *
 * The loop calls `update`; watchers get the newest status at once and then at most a few changes a second, however
 * often it changes. A final status (succeeded, failed, stopped) goes out at once and ends the watch.
 */
import * as grpc from "@grpc/grpc-js";
import { requireRole } from "../../proto/channel.ts";
import { ChannelError } from "../../proto/errors.ts";
import { type LearnerStatusHandlers, messages, type StatusMessage } from "../../proto/service.ts";

const { Phase } = messages;

export { Phase };

export interface StatusBoardOptions {
  /** Shortest time between two statuses to one watcher. */
  intervalSeconds?: number;
  /** More than the controller's replicas and a few people; others are refused. */
  maxWatchers?: number;
  now?: () => number;
}

type Listener = (status: StatusMessage) => void;

const FINAL: readonly number[] = [Phase.SUCCEEDED, Phase.FAILED_RUN, Phase.STOPPED];
export const isFinal = (status: StatusMessage) => FINAL.includes(status.phase ?? Phase.STARTING);

/** Whether a change says that more of the work is done; counts of what is running say nothing of it. */
function moves(change: StatusMessage, before: StatusMessage): boolean {
  const differs = (field: "iteration" | "phaseDone" | "iterationJson") =>
    change[field] !== undefined && change[field] !== before[field];
  return differs("iteration") || differs("phaseDone") || differs("iterationJson");
}

export class StatusBoard {
  #status: StatusMessage = { phase: Phase.STARTING };
  #sources: (() => StatusMessage)[] = [];
  #listeners = new Set<Listener>();
  #timer: NodeJS.Timeout | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #phaseSince: number;
  #progressAt: number;
  readonly #intervalMs: number;
  readonly #maxWatchers: number;
  readonly #now: () => number;

  constructor({ intervalSeconds = 0.2, maxWatchers = 64, now = () => performance.now() }: StatusBoardOptions = {}) {
    this.#intervalMs = intervalSeconds * 1000;
    this.#maxWatchers = maxWatchers;
    this.#now = now;
    this.#phaseSince = now();
    this.#progressAt = now();
  }

  /** Changes the given fields, keeps the others. A new phase starts with no progress and no message. */
  update(change: StatusMessage): void {
    const next = change.phase !== undefined && change.phase !== this.#status.phase;
    if (next) this.#phaseSince = this.#now();
    if (next || moves(change, this.#status)) this.#progressAt = this.#now();
    const fresh = next ? { phaseDone: 0, phaseTotal: 0, message: "", blocked: "", blockedSinceUnixMs: 0 } : {};
    this.#status = { ...this.#status, ...fresh, ...change };
    this.changed();
  }

  /** Fields that are computed when a status goes out. Call `changed` when they have changed. */
  addSource(source: () => StatusMessage): void {
    this.#sources.push(source);
  }

  /** Since a phase began or came on, however long it has to wait for something. */
  get secondsSinceProgress(): number {
    return (this.#now() - this.#progressAt) / 1000;
  }

  get current(): StatusMessage {
    const status = { ...this.#status, phaseSeconds: (this.#now() - this.#phaseSince) / 1000 };
    return Object.assign(status, ...this.#sources.map((source) => source()));
  }

  /** Watchers are told soon. */
  changed(): void {
    if (this.#listeners.size === 0) return;
    if (isFinal(this.#status)) this.#send();
    else
      this.#timer ??= setTimeout(
        () => this.#send(),
        Math.max(0, this.#sentAt + this.#intervalMs - this.#now()),
      ).unref();
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentAt = this.#now();
    const status = this.current;
    for (const listener of [...this.#listeners]) listener(status);
  }

  /** Calls `listener` with each status, the current one at once. @returns how to end it */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener);
    listener(this.current);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearTimeout(this.#timer);
      if (this.#listeners.size === 0) this.#timer = undefined;
    };
  }

  /** The gRPC service. Only the controller's role may watch. */
  get handlers(): LearnerStatusHandlers {
    return { watch: (call) => this.#serve(call) };
  }

  #serve(call: Parameters<LearnerStatusHandlers["watch"]>[0]): void {
    try {
      requireRole(call, "controller");
    } catch (error) {
      const code =
        error instanceof ChannelError && error.code === "permissionDenied" ? "PERMISSION_DENIED" : "UNAUTHENTICATED";
      call.emit("error", { code: grpc.status[code], details: (error as Error).message });
      return;
    }
    if (this.#listeners.size >= this.#maxWatchers) {
      call.emit("error", { code: grpc.status.RESOURCE_EXHAUSTED, details: `${this.#maxWatchers} watch already` });
      return;
    }
    // A watcher that reads slowly gets the newest status when it is ready for one, not each that it missed.
    let ready = true;
    let missed: StatusMessage | undefined;
    let stop = () => {};
    const send = (status: StatusMessage) => {
      if (!ready) {
        missed = status;
        return;
      }
      missed = undefined;
      ready = call.write(status);
      if (isFinal(status)) {
        stop();
        call.end();
      }
    };
    call.on("drain", () => {
      ready = true;
      if (missed !== undefined) send(missed);
    });
    call.on("cancelled", () => stop());
    call.on("close", () => stop());
    stop = this.watch(send);
    if (isFinal(this.current)) stop();
  }
}
