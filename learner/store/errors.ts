import { CodedError } from "../../proto/errors.ts";

/** What can go wrong with the store; `code` is stable, the message says what to do. */
export type StoreErrorCode =
  | "open" // the file cannot be opened, is no store, or is damaged
  | "schemaVersion" // made by another version of longrun
  | "busy" // another process kept it locked for longer than the wait
  | "diskFull"
  | "readOnly" // a write to a store that was opened to be read, or on a volume that cannot be written
  | "fenced" // a newer learner has taken the store over
  | "conflict" // the write does not fit what the store holds: a fault of the caller
  | "io"; // anything else that SQLite reports

export class StoreError extends CodedError<StoreErrorCode> {}
