/** Calls of a controller to a running learner (LearnerControl in longrun.proto). */
import type * as grpc from "@grpc/grpc-js";
import { requireRole } from "../../proto/channel.ts";
import type { LearnerControlHandlers, SuspendResponseMessage, TerminationMessage } from "../../proto/service.ts";
import { statusOf } from "./errors.ts";
import type { Termination } from "./terminations.ts";

export interface SuspendRequest {
  reason: string;
  drainSeconds: number;
}

interface ControlOptions {
  /** @returns whether this actor is connected */
  drainActor(actor: string, reason: string): boolean;
  suspend(request: SuspendRequest): Promise<SuspendResponseMessage>;
  /** @returns whether the report decided an attempt's outcome */
  reportTermination(termination: Termination): boolean;
  reportDisruption(actor: string): void;
}

const REASON_CHARACTERS = 200;

export function controlHandlers(options: ControlOptions): LearnerControlHandlers {
  const { drainActor, suspend, reportTermination, reportDisruption } = options;
  return {
    drainActors: unary(({ actors, reason }) => ({
      notConnected: (actors ?? []).filter((actor) => !drainActor(actor, parseReason(reason))),
    })),
    suspend: unary(({ reason, drainSeconds }) =>
      suspend({ reason: parseReason(reason), drainSeconds: Math.max(0, drainSeconds || 0) }),
    ),
    reportTerminations: unary(({ terminations, disrupted }) => {
      for (const actor of disrupted ?? []) reportDisruption(actor);
      return { outOfMemory: (terminations ?? []).map(parseTermination).filter(reportTermination).length };
    }),
  };
}

const parseReason = (reason?: string | null): string =>
  (reason || "the controller asked for it").slice(0, REASON_CHARACTERS);

const parseTermination = (it: TerminationMessage): Termination => ({
  actor: it.actor ?? "",
  slot: it.slot ?? 0,
  reason: it.reason ?? "",
  exitCode: it.exitCode ?? 0,
  finishedAtMs: it.finishedUnixMs ?? 0,
});

/** Checks the role, answers, and converts errors to the call's status. */
function unary<Request, Response>(
  answer: (request: Request) => Response | Promise<Response>,
): grpc.handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const respond = async () => {
      requireRole(call, "controller");
      return await answer(call.request);
    };
    respond().then(
      (response) => callback(null, response),
      (error: unknown) => callback(statusOf(error)),
    );
  };
}
