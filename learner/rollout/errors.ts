/** A fault of a rollout's input, in one line that says what to change. */
export class RolloutError extends Error {
  /** `prompt`: none fits the limits; `task`: its files cannot be shown; `instrumenter`: its limits exceed the model's. */
  readonly code: "prompt" | "task" | "instrumenter";

  constructor(code: RolloutError["code"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "RolloutError";
    this.code = code;
  }
}
