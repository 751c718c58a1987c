/** What went wrong with a fetch; stable. `input`, `access` and `disk` need a person, the others may pass. */
export type HubErrorCode = "input" | "access" | "disk" | "network" | "hash";

/** A model cannot be fetched. The message is one line: what is wrong with what, and the remedy. */
export class HubError extends Error {
  override readonly name = "HubError";
  readonly code: HubErrorCode;
  /** Whether another try may succeed, and after how many seconds where the server says. */
  readonly again: { afterSeconds?: number | undefined } | undefined;

  constructor(code: HubErrorCode, message: string, options: ErrorOptions & { again?: HubError["again"] } = {}) {
    super(message.replace(/\p{Cc}+/gu, " "), options);
    this.code = code;
    this.again = options.again;
  }

  /** Whether trying again without a change of what was asked for, of rights or of disk is in vain. */
  get needsPerson(): boolean {
    return this.code === "input" || this.code === "access" || this.code === "disk";
  }
}
