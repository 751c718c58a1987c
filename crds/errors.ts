/** A manifest that cannot be used. `message` has one line for each problem: the place, the problem and the remedy. */
export class ManifestError extends Error {
  readonly code = "manifest";
  readonly problems: string[];

  constructor(problems: string[], options?: ErrorOptions) {
    super(problems.join("\n"), options);
    this.name = "ManifestError";
    this.problems = problems;
  }
}
