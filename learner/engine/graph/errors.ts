/** A graph that cannot be built or run. `code` is stable: shape, dtype, graph, gradient, session, device, feed. */
export class GraphError extends Error {
  readonly code: "shape" | "dtype" | "graph" | "gradient" | "session" | "device" | "feed";

  constructor(code: GraphError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GraphError";
    this.code = code;
  }
}
