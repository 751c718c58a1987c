/** Why generators cannot be used. `code` is stable. */
export class GeneratorError extends Error {
  /**
   * `none`: no generator could be used for `noGeneratorSeconds`. `request`: a message that the
   * protocol does not allow. `version`: the generator has other weights than the request names. `busy`: it takes no work now.
   * `failed`: whatever else ended a request.
   */
  readonly code: "none" | "request" | "version" | "busy" | "failed";

  constructor(code: GeneratorError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorError";
    this.code = code;
  }
}
