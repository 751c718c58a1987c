import { CodedError } from "./graph/errors.ts";

/** The engine cannot serve a request: batch, step, checkpoint, memory, worker, compute, reference. */
export class EngineError extends CodedError<string> {}
