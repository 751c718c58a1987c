/**
 * The learner's current status and its watchers (LearnerStatus.Watch).
 *
 * The loop calls `update`. A watcher gets the current status at once, then a new phase or a finished iteration within 0.2 s, and counts
 * every 2 s or as often as it requests: a controller watches a thousand learners, `longrun run` one. A final status (succeeded, failed,
 * stopped) is sent at once and ends the watch.
 */
import * as grpc from "@grpc/grpc-js";
import { requireRole } from "../../proto/channel.ts";
import { type LearnerStatusHandlers, messages, type StatusMessage } from "../../proto/service.ts";
import { statusOf } from "./errors.ts";

export const { Phase } = messages;

interface StatusBoardOptions {
  /** Shortest time between two statuses to one watcher. [0.2] */
  intervalSeconds?: number;
  /** The same for statuses that only differ in counts, unless the watcher requests another interval. [2] */
  countsSeconds?: number;
  /** Returns milliseconds. */
  now?: () => number;
}

/** More than the controller's replicas and a few people. Further watchers are refused. */
const MAX_WATCHERS = 64;

type Listener = (status: StatusMessage) => void;

interface Watcher {
  listener: Listener;
  countsMs: number;
  sentAt: number;
  /** The last sent status without its counts. */
  said: string;
  timer: { handle: NodeJS.Timeout; dueMs: number } | undefined;
}

/** Returns the status without the fields that change with every execution and sample. */
function withoutCounts({ phaseDone, phaseTotal, executions, actors, ...rest }: StatusMessage): string {
  return JSON.stringify(rest);
}

const FINAL: readonly number[] = [Phase.SUCCEEDED, Phase.FAILED_RUN, Phase.STOPPED];
export const isFinal = (status: StatusMessage) => FINAL.includes(status.phase ?? Phase.STARTING);

/** Returns whether a change shows progress of the work. Counts of executions do not. */
const moves = (change: StatusMessage, before: StatusMessage): boolean =>
  (["iteration", "phaseDone", "iterationJson"] as const).some(
    (field) => change[field] !== undefined && change[field] !== before[field],
  );

export class StatusBoard {
  #status: StatusMessage = { phase: Phase.STARTING };
  #sources: (() => StatusMessage)[] = [];
  readonly #watchers = new Set<Watcher>();
  readonly #options: Required<StatusBoardOptions>;
  #phaseSince: number;
  #progressAt: number;

  constructor(options: StatusBoardOptions = {}) {
    this.#options = { intervalSeconds: 0.2, countsSeconds: 2, now: () => performance.now(), ...options };
    this.#phaseSince = this.#progressAt = this.#now();
  }

  #now(): number {
    return this.#options.now();
  }

  /** Changes the given fields and keeps the others. A new phase starts without progress and message. */
  update(change: StatusMessage): void {
    const next = change.phase !== undefined && change.phase !== this.#status.phase;
    if (next) this.#phaseSince = this.#now();
    if (next || moves(change, this.#status)) this.#progressAt = this.#now();
    const fresh = next ? { phaseDone: 0, phaseTotal: 0, message: "", blocked: "", blockedSinceUnixMs: 0 } : {};
    this.#status = { ...this.#status, ...fresh, ...change };
    this.changed();
  }

  /** Adds fields that are computed when a status is sent. Call `changed` when they have changed. */
  addSource(source: () => StatusMessage): void {
    this.#sources.push(source);
  }

  /** Seconds since the phase began or last made progress. */
  get secondsSinceProgress(): number {
    return (this.#now() - this.#progressAt) / 1000;
  }

  get current(): StatusMessage {
    const status = { ...this.#status, phaseSeconds: (this.#now() - this.#phaseSince) / 1000 };
    return Object.assign(status, ...this.#sources.map((source) => source()));
  }

  changed(): void {
    if (this.#watchers.size === 0) return;
    const said = withoutCounts(this.#status);
    const intervalMs = this.#options.intervalSeconds * 1000;
    for (const watcher of [...this.#watchers]) {
      if (isFinal(this.#status)) this.#send(watcher);
      else this.#sendAt(watcher, watcher.sentAt + (said === watcher.said ? watcher.countsMs : intervalMs));
    }
  }

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

  /** Calls `listener` with the current status, then with each new one. @returns a function that ends the watch */
  watch(listener: Listener, countsSeconds = this.#options.countsSeconds): () => void {
    const watcher = { listener, countsMs: countsSeconds * 1000, sentAt: 0, said: "", timer: undefined } as Watcher;
    this.#watchers.add(watcher);
    this.#send(watcher);
    return () => {
      this.#watchers.delete(watcher);
      clearTimeout(watcher.timer?.handle);
    };
  }

  /** The gRPC service. Only the role of controllers may watch. */
  readonly handlers: LearnerStatusHandlers = { watch: (call) => this.#serve(call) };

  #serve(call: Parameters<LearnerStatusHandlers["watch"]>[0]): void {
    try {
      requireRole(call, "controller");
    } catch (error) {
      call.emit("error", statusOf(error));
      return;
    }
    if (this.#watchers.size >= MAX_WATCHERS) {
      call.emit("error", { code: grpc.status.RESOURCE_EXHAUSTED, details: `${MAX_WATCHERS} watch already` });
      return;
    }
    // A slow watcher gets the newest status when it is ready, not every status that it missed.
    let missed = false;
    let stop = () => {};
    const send = (status: StatusMessage) => {
      missed = call.writableNeedDrain;
      if (missed) return;
      call.write(status);
      if (!isFinal(status)) return;
      stop();
      call.end();
    };
    call.on("drain", () => {
      if (missed) send(this.current);
    });
    for (const event of ["cancelled", "close"]) call.on(event, () => stop());
    stop = this.watch(send, call.request.intervalSeconds || undefined);
    if (isFinal(this.current)) stop();
  }
}
