/** What can go wrong with the channel between the parts; `code` is stable, the message says what to do. */
export type ChannelErrorCode =
  | "tlsFile" // a PEM file is missing or unreadable
  | "unauthenticated" // the peer showed no certificate, or one without a role or a name
  | "permissionDenied"; // the peer's role may not make this call, or its certificate is another actor's

export class ChannelError extends Error {
  readonly code: ChannelErrorCode;
  constructor(code: ChannelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ChannelError";
    this.code = code;
  }
}
