/** Handles Ctrl-C and similar signals: the first asks for an orderly stop, the second ends everything at once. */
import { ControllerError, EXIT } from "../errors.ts";

const SIGNALS: NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

interface Interruption {
  /** The first signal aborts it. Its reason is a ControllerError `interrupted`. */
  signal: AbortSignal;
  /** Removes the listeners. After a first signal they stay: a second one must not change the exit status of a process that is ending. */
  dispose(): void;
}

/** @param onFirst called on the first signal @param onSecond called on the second, right before the process ends */
export function listenForInterrupts(
  onFirst: (name: NodeJS.Signals) => void,
  onSecond: () => void = () => {},
): Interruption {
  const controller = new AbortController();
  const listener = (name: NodeJS.Signals): void => {
    // `exit` handlers end child processes and remove temporary files.
    if (controller.signal.aborted) {
      onSecond();
      process.exit(EXIT.interrupted);
    }
    onFirst(name);
    controller.abort(new ControllerError("interrupted", "stopped"));
  };
  for (const name of SIGNALS) process.on(name, listener);
  return {
    signal: controller.signal,
    dispose() {
      if (controller.signal.aborted) return;
      for (const name of SIGNALS) process.off(name, listener);
    },
  };
}
