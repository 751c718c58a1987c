/** Packs whole rows of tokens into passes, one row after the other, so that a pass has no padding: bin packing. */

interface Pass {
  tokens: number;
  /** indices of lengths, longest first */
  rows: number[];
}

/**
 * Returns the rows of each pass as indices of `lengths`, in both the longest first. A row longer than `tokens` goes alone. The lengths of the
 * passes depend on the lengths alone, not on their order.
 *
 * Each row, longest first, goes into the fullest pass that has room for it: at most 11/9 of the fewest possible passes and one more (Johnson
 * 1974), and any two passes have more than `tokens` together. Several workers get equally many passes of about the same length, if
 * these have room for all rows.
 *
 * @param tokens most tokens of a pass
 */
export function packed(lengths: readonly number[], tokens: number, workers = 1): number[][] {
  const order = Array.from(lengths.keys()).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const fitting = bestFit(lengths, order, tokens);
  const even = workers > 1 ? leastFirst(lengths, order, workers * Math.ceil(fitting.length / workers)) : fitting;
  const passes = even.every((pass) => pass.tokens <= tokens || pass.rows.length === 1) ? even : fitting;
  return passes.sort((a, b) => b.tokens - a.tokens || a.rows[0]! - b.rows[0]!).map(({ rows }) => rows);
}

function bestFit(lengths: readonly number[], order: readonly number[], tokens: number): Pass[] {
  const passes: Pass[] = [];
  for (const row of order) {
    const length = lengths[row]!;
    const roomy = passes.filter((pass) => pass.tokens + length <= tokens);
    if (roomy.length === 0) passes.push({ tokens: length, rows: [row] });
    else
      add(
        roomy.reduce((a, b) => (b.tokens > a.tokens ? b : a)),
        row,
        length,
      );
  }
  return passes;
}

/** Gives each row to the shortest of `count` passes. */
function leastFirst(lengths: readonly number[], order: readonly number[], count: number): Pass[] {
  const passes = Array.from({ length: count }, (): Pass => ({ tokens: 0, rows: [] }));
  for (const row of order)
    add(
      passes.reduce((a, b) => (b.tokens < a.tokens ? b : a)),
      row,
      lengths[row]!,
    );
  return passes.filter(({ rows }) => rows.length > 0);
}

function add(pass: Pass, row: number, length: number): void {
  pass.rows.push(row);
  pass.tokens += length;
}
