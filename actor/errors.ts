type ActorErrorCode =
  | "arguments" // an unusable command line
  | "pythonMissing" // no such interpreter
  | "pythonTooOld" // older than 3.10
  | "pythonVenv" // the interpreter has no venv or ensurepip
  | "pythonPackages" // pip could not install the requirements
  | "diskFull"
  | "isolation" // no isolation level works on this machine
  | "sandbox" // the zygote died or sent invalid data
  | "lease" // an invalid lease
  | "task" // an incomplete task folder
  | "packages" // the sandbox lacks packages that the learner's prompts name
  | "names" // the learner's name does not resolve
  | "refused"; // the learner turned this actor away

/** A fault of the actor or of its machine, never of a program. The message contains the remedy. */
export class ActorError extends Error {
  readonly code: ActorErrorCode;

  constructor(code: ActorErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ActorError";
    this.code = code;
  }
}
