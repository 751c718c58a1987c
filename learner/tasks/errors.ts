/** A task cannot be prepared or opened. The message is one line: the problem and the remedy. */
export class TaskError extends Error {
  override readonly name = "TaskError";
  readonly code: "input" | "download" | "hash" | "python" | "disk" | "folder" | "answers";

  constructor(code: TaskError["code"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
