/** Work of the main thread, which serves actors and metrics meanwhile. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Work this long is done without a look at what else waits, milliseconds. */
const TURN_MILLISECONDS = 10;

/** `items.map(work)`, one after the other, but no longer than a turn and one item's work at a time. */
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
