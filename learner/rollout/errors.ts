/** A fault of a rollout's input, in one line that says what to change. */
export class RolloutError extends Error {
  /** `prompt`: a prompt cannot be made within the limits; `task`: a task's files cannot be shown. */
  readonly code: "prompt" | "task";

  constructor(code: RolloutError["code"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "RolloutError";
    this.code = code;
  }
}
