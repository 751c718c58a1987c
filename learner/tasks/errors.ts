/** What can be wrong with a task: how it was asked for, its package, its folder, or the disk that it goes to. */
export type TaskErrorCode = "input" | "download" | "hash" | "python" | "disk" | "folder" | "answers";

/** A task cannot be prepared or opened. The message is one line: what is wrong with what, and the remedy. */
export class TaskError extends Error {
  override readonly name = "TaskError";
  readonly code: TaskErrorCode;

  constructor(code: TaskErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
