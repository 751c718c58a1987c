/** The time that a search has taken, without interruptions. */

/** Unix milliseconds of the beginning and of the last sign of life of each process that searched. */
export type Sessions = [begin: number, end: number][];

/** Returns the seconds of search up to a moment, in Unix milliseconds. */
export const secondsAt = (sessions: Readonly<Sessions>, at: number): number =>
  sessions.reduce((sum, [begin, end]) => sum + Math.max(0, Math.min(end, at) - begin), 0) / 1000;
