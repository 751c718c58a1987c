/** What can go wrong with the learner's server; `code` is stable, the message says what to do. */
export type ServerErrorCode =
  | "listen" // the address cannot be listened on
  | "protocol" // an actor sent what the protocol does not allow: ends its stream, nothing else
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
