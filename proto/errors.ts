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
type ChannelErrorCode =
  | "tlsFile" // a PEM file is missing or unreadable
  | "unauthenticated" // the peer showed no certificate, or one without a role or a name
  | "permissionDenied"; // the peer's role may not make this call, or its certificate is another actor's

export class ChannelError extends CodedError<ChannelErrorCode> {}

/** @returns one line about a file that could not be read or written, with the remedy */
export function describeFileError(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
      return `${path}: there is no such file; check the path`;
    case "EISDIR":
      return `${path}: is a folder; give a file`;
    case "ENOTDIR":
      return `${path}: a part of this path is not a folder; check the path`;
    case "EACCES":
    case "EPERM":
      return `${path}: no permission; change its owner or mode, or choose another place`;
    case "EROFS":
      return `${path}: the disk is read-only; make it writable, or choose another place`;
    case "ENOSPC":
    case "EDQUOT":
      return `${path}: the disk is full; free some space or choose another place`;
    default:
      return `${path}: ${message}`;
  }
}
