/** Exit statuses of `longrun`; controller/README.md has the table. proto/closed-pipe.ts has 141, a closed pipe. */
export const EXIT = { done: 0, failed: 1, badInput: 2, interrupted: 130 } as const;

/**
 * `input`: the user's input cannot be used. `failed`: the input was valid, but the command failed. `interrupted`: the user stopped the
 * command.
 */
type ControllerErrorCode = "input" | "failed" | "interrupted";

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
