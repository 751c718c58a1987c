/** An error whose `code` is stable, so that callers can tell errors apart. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Errors of the channel between the parts. `code` is stable; the message contains the remedy. */
export type ChannelErrorCode =
  | "tlsFile" // a PEM file is missing or unreadable
  | "unauthenticated" // the peer showed no certificate, or one without a role or a name
  | "permissionDenied"; // the peer's role may not make this call, or its certificate is another actor's

export class ChannelError extends CodedError<ChannelErrorCode> {}
