import * as grpc from "@grpc/grpc-js";
import { ChannelError } from "../../proto/errors.ts";
import { StoreError } from "../store/errors.ts";

/** What can go wrong with the learner's server; `code` is stable, the message says what to do. */
export type ServerErrorCode =
  | "listen" // the address cannot be listened on
  | "protocol" // an actor sent what the protocol does not allow: ends its stream, nothing else
  | "flood" // a stream sends more messages than any actor has to send
  | "packages" // an actor's sandbox lacks what spec.actors.packages promises
  | "stalled" // a wait made no progress within its deadline
  | "stopped"; // the wait was ended because the learner stops

export class ServerError extends Error {
  readonly code: ServerErrorCode;
  constructor(code: ServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ServerError";
    this.code = code;
  }
}

/** Of those that it makes no sense to come back after. */
const STATUSES: Partial<Record<ServerErrorCode, grpc.status>> = {
  protocol: grpc.status.INVALID_ARGUMENT,
  flood: grpc.status.RESOURCE_EXHAUSTED,
  packages: grpc.status.FAILED_PRECONDITION,
};

/** As what an error ends a call. */
export function statusOf(error: unknown): { code: grpc.status; details: string } {
  const details = error instanceof Error ? error.message : String(error);
  if (error instanceof ChannelError)
    return {
      code: error.code === "permissionDenied" ? grpc.status.PERMISSION_DENIED : grpc.status.UNAUTHENTICATED,
      details,
    };
  if (error instanceof ServerError) return { code: STATUSES[error.code] ?? grpc.status.UNAVAILABLE, details };
  // The actor's message was fine and will be again: it comes back with it.
  if (error instanceof StoreError) return { code: grpc.status.UNAVAILABLE, details };
  return { code: grpc.status.INTERNAL, details };
}
