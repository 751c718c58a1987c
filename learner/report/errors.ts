/** A fault of the report or of the run folder that it reads. `code` is stable; the message says what to do. */
export class ReportError extends Error {
  readonly code: "run-folder" | "arguments" | "write";

  constructor(code: ReportError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ReportError";
    this.code = code;
  }
}
