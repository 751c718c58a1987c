/**
 * The learner's current status and whoever watches it (LearnerStatus.Watch).
 *
 * The loop calls `update`; watchers get the newest status at once, then what matters (a phase, a finished iteration) within
 * 0.2 s and counts every 2 s, or as often as the watcher asks: a controller follows a thousand learners, `longrun run` one.
 * A final status (succeeded, failed, stopped) goes out at once and ends the watch.
 */
import * as grpc from "@grpc/grpc-js";
import { requireRole } from "../../proto/channel.ts";
import { ChannelError } from "../../proto/errors.ts";
import { type LearnerStatusHandlers, messages, type StatusMessage } from "../../proto/service.ts";

const { Phase } = messages;

export { Phase };

export interface StatusBoardOptions {
  /** Shortest time between two statuses to one watcher. [0.2] */
  intervalSeconds?: number;
  /** The same of statuses that differ in counts alone, for a watcher that does not say. [2] */
  countsSeconds?: number;
  /** More than the controller's replicas and a few people; others are refused. */
  maxWatchers?: number;
  now?: () => number;
}

type Listener = (status: StatusMessage) => void;

interface Watcher {
  listener: Listener;
  /** Between statuses that differ in counts alone. */
  countsMs: number;
  sentAt: number;
  /** What else than counts the last status said. */
  said: string;
  timer: { handle: NodeJS.Timeout; dueMs: number } | undefined;
}

/** All but what moves with every execution and every sample. */
function withoutCounts({ phaseDone, phaseTotal, executions, actors, ...rest }: StatusMessage): string {
  return JSON.stringify(rest);
}

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
  readonly #watchers = new Set<Watcher>();
  #phaseSince: number;
  #progressAt: number;
  readonly #intervalMs: number;
  readonly #countsSeconds: number;
  readonly #maxWatchers: number;
  readonly #now: () => number;

  constructor({
    intervalSeconds = 0.2,
    countsSeconds = 2,
    maxWatchers = 64,
    now = () => performance.now(),
  }: StatusBoardOptions = {}) {
    this.#intervalMs = intervalSeconds * 1000;
    this.#countsSeconds = countsSeconds;
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
    if (this.#watchers.size === 0) return;
    const said = withoutCounts(this.#status);
    for (const watcher of [...this.#watchers]) {
      if (isFinal(this.#status)) this.#send(watcher);
      else this.#sendAt(watcher, watcher.sentAt + (said === watcher.said ? watcher.countsMs : this.#intervalMs));
    }
  }

  /** Or earlier, where that was planned. */
  #sendAt(watcher: Watcher, dueMs: number): void {
    if (watcher.timer && watcher.timer.dueMs <= dueMs) return;
    clearTimeout(watcher.timer?.handle);
    const handle = setTimeout(() => this.#send(watcher), Math.max(0, dueMs - this.#now())).unref();
    watcher.timer = { handle, dueMs };
  }

  #send(watcher: Watcher): void {
    clearTimeout(watcher.timer?.handle);
    watcher.timer = undefined;
    watcher.sentAt = this.#now();
    watcher.said = withoutCounts(this.#status);
    watcher.listener(this.current);
  }

  /**
   * Calls `listener` with each status, the current one at once.
   *
   * @param countsSeconds shortest time between two that differ in counts alone
   * @returns how to end it
   */
  watch(listener: Listener, countsSeconds = this.#countsSeconds): () => void {
    const watcher = { listener, countsMs: countsSeconds * 1000, sentAt: 0, said: "", timer: undefined } as Watcher;
    this.#watchers.add(watcher);
    this.#send(watcher);
    return () => {
      this.#watchers.delete(watcher);
      clearTimeout(watcher.timer?.handle);
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
    if (this.#watchers.size >= this.#maxWatchers) {
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
    stop = this.watch(send, call.request.intervalSeconds || undefined);
    if (isFinal(this.current)) stop();
  }
}
