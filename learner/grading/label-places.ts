/** Replaces labels by numbers for metrics of classes. Text labels and whole numbers beyond 2^53 stay distinct. */
import { type Column, exactValue, isNumeric } from "./column.ts";

type Label = string | number | bigint;

/**
 * Returns a function that replaces a column's labels by their places among the answers' sorted labels, from 0. Places are equal and ordered
 * as the labels are: labels that the answers lack lie at fractions between the places.
 *
 * @param answers if they are numbers, the other columns must be numbers too
 */
export function placesAmong(answers: Column): (labels: Column) => Float64Array {
  const labelOf = isNumeric(answers)
    ? (column: Column, row: number): Label => exactValue(column as typeof answers, row)
    : (column: Column, row: number): Label => column.cell(row).trim();
  const known = sortedLabels(Array.from({ length: answers.rows }, (_, row) => labelOf(answers, row)));
  const places = new Map(known.map((label, place) => [label, place]));
  return (column) => {
    const found = new Float64Array(column.rows);
    const others = new Map<number, Label>();
    for (let row = 0; row < found.length; row++) {
      const label = labelOf(column, row);
      const place = places.get(label);
      if (place === undefined) others.set(row, label);
      else found[row] = place;
    }
    const between = placesBetween(known, sortedLabels([...others.values()]));
    for (const [row, label] of others) found[row] = between.get(label)!;
    return found;
  };
}

function sortedLabels(labels: readonly Label[]): Label[] {
  return [...new Set(labels)].sort((a, b) => (a < b ? -1 : 1));
}

/** Returns places for `others`, which are none of `known`: n labels between places 3 and 4 get 3 + 1 / (n + 1) and so on. */
function placesBetween(known: readonly Label[], others: readonly Label[]): Map<Label, number> {
  const places = new Map<Label, number>();
  for (let from = 0, next = 0; from < others.length; ) {
    while (next < known.length && known[next]! < others[from]!) next++;
    let to = from + 1;
    while (to < others.length && (next === known.length || others[to]! < known[next]!)) to++;
    for (let i = from; i < to; i++) places.set(others[i]!, next - 1 + (i - from + 1) / (to - from + 1));
    from = to;
  }
  return places;
}
