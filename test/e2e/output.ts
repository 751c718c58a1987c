/** Output of the end-to-end test: steps with their times, and the output that a user would see. */

export const timings: [string, number][] = [];
export const say = (text: string) => process.stdout.write(`${text.replace(/^/gm, "    ")}\n`);

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
