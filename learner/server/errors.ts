import * as grpc from "@grpc/grpc-js";
import { ChannelError, CodedError } from "../../proto/errors.ts";
import { StoreError } from "../store/errors.ts";

/** What can go wrong with the learner's server; `code` is stable, the message says what to do. */
export type ServerErrorCode =
  | "listen" // the address cannot be listened on
  | "protocol" // an actor sent what the protocol does not allow: ends its stream, nothing else
  | "flood" // a stream sends more messages than any actor has to send
  | "packages" // an actor's sandbox lacks what spec.actors.packages promises
  | "stalled" // a wait made no progress within its deadline
  | "stopped"; // the wait was ended because the learner stops

export class ServerError extends CodedError<ServerErrorCode> {}

/** Statuses after which the actor does not come back; all other errors are UNAVAILABLE. */
const STATUSES: Partial<Record<ServerErrorCode, grpc.status>> = {
  protocol: grpc.status.INVALID_ARGUMENT,
  flood: grpc.status.RESOURCE_EXHAUSTED,
  packages: grpc.status.FAILED_PRECONDITION,
};

/** Returns the status with which an error ends a call. */
export function statusOf(error: unknown): { code: grpc.status; details: string } {
  const details = error instanceof Error ? error.message : String(error);
  const { PERMISSION_DENIED, UNAUTHENTICATED, UNAVAILABLE, INTERNAL } = grpc.status;
  if (error instanceof ChannelError)
    return { code: error.code === "permissionDenied" ? PERMISSION_DENIED : UNAUTHENTICATED, details };
  if (error instanceof ServerError) return { code: STATUSES[error.code] ?? UNAVAILABLE, details };
  // The actor's message was good: it comes back and sends it again.
  return { code: error instanceof StoreError ? UNAVAILABLE : INTERNAL, details };
}
