import { CodedError } from "./graph/errors.ts";

/** A request to the engine that cannot be served: batch, step, checkpoint, memory, worker, compute. */
export class EngineError extends CodedError<string> {}
