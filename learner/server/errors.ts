import * as grpc from "@grpc/grpc-js";
import { ChannelError, CodedError } from "../../proto/errors.ts";
import { StoreError } from "../store/errors.ts";

/** Errors of the learner's server. `code` is stable; the message contains the remedy. */
type ServerErrorCode =
  | "listen" // the server cannot listen on the address
  | "protocol" // an actor broke the protocol: only its stream ends
  | "flood" // a stream sends more messages than any actor needs
  | "packages" // an actor's sandbox lacks packages of spec.actors.packages
  | "stalled" // a wait made no progress within its deadline
  | "stopped"; // the wait ended because the learner stops

export class ServerError extends CodedError<ServerErrorCode> {}

/** Statuses after which the actor does not reconnect; all other errors are UNAVAILABLE. */
const STATUSES: Partial<Record<ServerErrorCode, grpc.status>> = {
  protocol: grpc.status.INVALID_ARGUMENT,
  flood: grpc.status.RESOURCE_EXHAUSTED,
  packages: grpc.status.FAILED_PRECONDITION,
};

/** Returns the status of a call that ended with this error. */
export function statusOf(error: unknown): { code: grpc.status; details: string } {
  const details = error instanceof Error ? error.message : String(error);
  const { PERMISSION_DENIED, UNAUTHENTICATED, UNAVAILABLE, INTERNAL } = grpc.status;
  if (error instanceof ChannelError)
    return { code: error.code === "permissionDenied" ? PERMISSION_DENIED : UNAUTHENTICATED, details };
  if (error instanceof ServerError) return { code: STATUSES[error.code] ?? UNAVAILABLE, details };
  // The actor's message was valid: the actor reconnects and sends it again.
  return { code: error instanceof StoreError ? UNAVAILABLE : INTERNAL, details };
}
