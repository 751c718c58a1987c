export type ActorErrorCode =
  | "arguments" // a command line that cannot be meant
  | "pythonMissing" // no such interpreter
  | "pythonTooOld" // older than 3.10
  | "pythonVenv" // the interpreter has no venv or ensurepip
  | "pythonPackages" // pip could not install the requirements
  | "diskFull"
  | "isolation" // no isolation level works here
  | "sandbox" // the zygote died or spoke nonsense
  | "lease" // one that makes no sense
  | "task" // the task folder lacks something
  | "packages" // the sandbox lacks what the learner's prompts name
  | "refused"; // the learner turned this actor away

/** A fault of the actor or of its surroundings, never of a program. The message says what to do about it. */
export class ActorError extends Error {
  readonly code: ActorErrorCode;

  constructor(code: ActorErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ActorError";
    this.code = code;
  }
}
