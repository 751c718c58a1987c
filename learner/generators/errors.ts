/** Why generators cannot be used. `code` is stable. */
export class GeneratorError extends Error {
  /**
   * `none`: no generator could be used for `noGeneratorSeconds`. `request`: a message breaks the protocol. `version`: the generator has
   * other weights than the request names. `busy`: it takes no work now. `failed`: any other fault of a request.
   */
  readonly code: "none" | "request" | "version" | "busy" | "failed";

  constructor(code: GeneratorError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorError";
    this.code = code;
  }
}
