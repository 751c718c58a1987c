import { readdirSync, readFileSync } from "node:fs";

/** Returns the processes below this one, the nearest first. */
export function descendants(pid: number): number[] {
  const below = [pid];
  for (const current of below)
    try {
      for (const thread of readdirSync(`/proc/${current}/task`))
        below.push(
          ...readFileSync(`/proc/${current}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
        );
    } catch {
      // The process ended.
    }
  return below.slice(1);
}
