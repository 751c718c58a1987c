/** A fault of a rollout's input, in one line with the remedy. */
export class RolloutError extends Error {
  /** `prompt`: no prompt fits the limits; `task`: its files cannot be shown; `instrumenter`: its limits exceed the model's. */
  readonly code: "prompt" | "task" | "instrumenter";

  constructor(code: RolloutError["code"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "RolloutError";
    this.code = code;
  }
}
