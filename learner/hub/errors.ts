/** Why a transfer failed; the codes are stable. `input`, `access` and `disk` need a person; a later try may overcome the others. */
type TransferErrorCode = "input" | "access" | "disk" | "network" | "hash";

/** A model cannot be fetched, or results cannot be copied. The message is one line with the fault and the remedy. */
export class TransferError extends Error {
  override readonly name = "TransferError";
  readonly code: TransferErrorCode;
  /** Whether another try may succeed, and after how many seconds where the server says. */
  readonly again: { afterSeconds?: number | undefined } | undefined;

  constructor(
    code: TransferErrorCode,
    message: string,
    options: ErrorOptions & { again?: TransferError["again"] } = {},
  ) {
    super(message.replace(/\p{Cc}+/gu, " "), options);
    this.code = code;
    this.again = options.again;
  }

  /** Whether a retry is useless until a person changes the request, the rights or the disk. */
  get needsPerson(): boolean {
    return this.code === "input" || this.code === "access" || this.code === "disk";
  }
}
