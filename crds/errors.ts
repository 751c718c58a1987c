/** A manifest that cannot be used. `message` has one line for each problem: where, what, and what to do. */
export class ManifestError extends Error {
  readonly code = "manifest";
  readonly problems: string[];

  constructor(problems: string[], options?: ErrorOptions) {
    super(problems.join("\n"), options);
    this.name = "ManifestError";
    this.problems = problems;
  }
}
