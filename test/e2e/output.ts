/** Output of the end-to-end test: steps with their times, and the output that a user would see. */
import { AsyncLocalStorage } from "node:async_hooks";

export const timings: [string, number][] = [];
/** Name of the flow that prints, where several flows run side by side. */
const flow = new AsyncLocalStorage<string>();

export const say = (text: string) =>
  process.stdout.write(`${text.replace(/^/gm, `    ${(flow.getStore() ?? "").padEnd(11)} `)}\n`);

/** Prints rows of `kubectl get --watch` that changed in more than their age. */
export function sayMoving(): (line: string) => void {
  let last = "";
  return (line) => {
    const row = line.replace(/\S+$/, "");
    if (row !== last) say(line);
    last = row;
  };
}

export async function step<T>(name: string, action: () => Promise<T>): Promise<T> {
  process.stdout.write(`--- ${name}\n`);
  const start = performance.now();
  const result = await action();
  timings.push([name, (performance.now() - start) / 1000]);
  return result;
}

/** Runs flows side by side, each with its name before its output. Waits for all. @throws Error with every failure */
export async function together(flows: Record<string, () => Promise<void>>): Promise<void> {
  const ends = await Promise.allSettled(Object.entries(flows).map(([name, run]) => flow.run(name, run)));
  const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as Error] : []));
  if (failures.length > 0) throw new AggregateError(failures, failures.map(({ stack }) => stack).join("\n"));
}
