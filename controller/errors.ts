/** Exit statuses of `longrun`; controller/README.md has the table. proto/closed-pipe.ts has 141, a closed pipe. */
export const EXIT = { done: 0, failed: 1, badInput: 2, interrupted: 130 } as const;

/**
 * `input`: the user's input cannot be used. `failed`: the input was valid, but the command failed. `interrupted`: the user stopped the
 * command.
 */
export type ControllerErrorCode = "input" | "failed" | "interrupted";

/** Ends a command. The message is one line for the terminal: the problem and the remedy. */
export class ControllerError extends Error {
  override readonly name = "ControllerError";
  readonly code: ControllerErrorCode;

  constructor(code: ControllerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** @returns the exit status of a command that ended with this error */
export function exitStatusOf(error: unknown): number {
  switch ((error as { code?: unknown }).code) {
    case "input":
    case "manifest":
      return EXIT.badInput;
    case "interrupted":
      return EXIT.interrupted;
    default:
      return EXIT.failed;
  }
}

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
      return `${path}: the disk is full; free some space or choose another place with --out`;
    default:
      return `${path}: ${message}`;
  }
}
