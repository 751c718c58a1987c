/** Why a transfer failed; the codes are stable. `input`, `access` and `disk` need a person; the others may pass by themselves. */
export type TransferErrorCode = "input" | "access" | "disk" | "network" | "hash";

/** A model cannot be fetched, or results cannot be copied. The message is one line: what is wrong with what, and the remedy. */
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

  /** Whether trying again without a change of what was asked for, of rights or of disk is in vain. */
  get needsPerson(): boolean {
    return this.code === "input" || this.code === "access" || this.code === "disk";
  }
}
