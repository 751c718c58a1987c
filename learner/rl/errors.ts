/** Why an update was refused. `code` is stable: `deviation`. */
export class UpdateError extends Error {
  readonly code: "deviation";

  constructor(code: UpdateError["code"], message: string) {
    super(message);
    this.name = "UpdateError";
    this.code = code;
  }
}
