import { CodedError } from "../../proto/errors.ts";

/** Faults of the store. `code` is stable; the message contains the remedy. */
export type StoreErrorCode =
  | "open" // the file cannot be opened, is no store, or is damaged
  | "schemaVersion" // another version of longrun made the file
  | "busy" // another process held the lock for longer than the wait
  | "diskFull"
  | "readOnly" // a write to a store that was opened for reading, or to a read-only volume
  | "fenced" // a newer learner has taken over the store
  | "conflict" // the write does not fit the store's content: a fault of the caller
  | "io"; // any other error of SQLite

export class StoreError extends CodedError<StoreErrorCode> {}
