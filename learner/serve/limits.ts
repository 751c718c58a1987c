/** The limits of the server. README.md says them too. */
export const LIMITS = {
  /** Bytes of a request's body. */
  bodyBytes: 4 * 1024 * 1024,
  /** Choices of one request: its prompts times `n`. */
  choices: 256,
  /** Words of `stop`. */
  stopWords: 16,
  /** Characters of each of them: so many may be held back from a stream. */
  stopCharacters: 256,
  /** Choices that wait for a slot, before requests are refused; default of --max-waiting. */
  waiting: 256,
  /** After how many seconds a client whose request was refused for that may try again. */
  retryAfterSeconds: 1,
  /** Time that running requests have to finish once the server is to end. */
  drainSeconds: 30,
  /** Time for request line and headers, and for the whole request. */
  headersSeconds: 10,
  requestSeconds: 60,
  /** A client that does not read its answer for so long is hung up on. */
  unreadSeconds: 30,
  /** A client that leaves so much of its stream unread is hung up on. */
  unreadBytes: 1024 * 1024,
  /** Connections; further ones are closed at once. */
  connections: 1024,
};
