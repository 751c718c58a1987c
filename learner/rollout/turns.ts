/** Divides work of the main thread, which also serves actors and metrics. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Longest work without a pause for other tasks, in milliseconds. */
const TURN_MILLISECONDS = 10;

/** Returns `items.map(work)`, computed in order, with pauses: at most a turn plus one item's work at a time. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let since = performance.now();
  for (const [index, item] of items.entries()) {
    if (performance.now() - since > TURN_MILLISECONDS) {
      await nextTurn();
      since = performance.now();
    }
    results.push(work(item, index));
  }
  return results;
}
