/** Ends a command quietly when nobody reads its output any more, as in `longrun --help | head -1`. */

/** 128 plus the number of SIGPIPE: the status that shells report for a program that writes to a closed pipe. */
export const CLOSED_PIPE = 141;

/** Ends the process quietly once its standard output or error is closed; `exit` handlers still stop child processes. */
export function endOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? CLOSED_PIPE : 1));
}
