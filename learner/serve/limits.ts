/** The server's limits. README.md lists them too. */
export const LIMITS = {
  /** Bytes of a request's body. */
  bodyBytes: 4 * 1024 * 1024,
  /** Nested lists and objects of a request's body. */
  depth: 64,
  /** Choices of one request: its prompts times `n`. */
  choices: 256,
  /** Time to tokenize the prompts of one request. */
  tokenizeSeconds: 10,
  /** Number of `stop` words. */
  stopWords: 16,
  /** Characters of each stop word; a stream may hold back as many. */
  stopCharacters: 256,
  /** Choices that wait for a slot before requests are refused; default of --max-waiting. */
  waiting: 256,
  /** After how many seconds a client may retry such a refused request. */
  retryAfterSeconds: 1,
  /** Time for running requests to finish when the server ends. */
  drainSeconds: 30,
  /** Time for request line and headers, and for the whole request. */
  headersSeconds: 10,
  requestSeconds: 60,
  /** A client that does not read its answer for this long is disconnected. */
  unreadSeconds: 30,
  /** A client that leaves this much of its stream unread is disconnected. */
  unreadBytes: 1024 * 1024,
  /** Connections; further ones are closed at once. */
  connections: 1024,
};
