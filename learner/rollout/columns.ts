/** Describes columns for a prompt: a run of one type such as `f_00`, `f_01`, ... takes one entry. */
import type { ColumnFacts } from "../tasks/profile.ts";

/** Shorter runs of columns are listed one by one. */
const shortestRun = 4;

type Named = { readonly name: string } & Partial<Pick<ColumnFacts, "type" | "missing">>;

/** Returns e.g. `id int`, `text text (12 missing)`, `margin1..margin64 float`; names alone without types. */
export function describeColumns(columns: readonly Named[]): string[] {
  const described: string[] = [];
  for (let at = 0; at < columns.length; ) {
    const first = columns[at]!;
    let next = at + 1;
    while (next < columns.length && follows(columns[next - 1]!, columns[next]!)) next++;
    if (next - at < shortestRun) next = at + 1;
    const { type, missing = 0 } = first;
    const name = next === at + 1 ? first.name : `${first.name}..${columns[next - 1]!.name}`;
    described.push(`${name}${type ? ` ${type}` : ""}${missing > 0 ? ` (${missing} missing)` : ""}`);
    at = next;
  }
  return described;
}

/**
 * Returns whether `b` continues a run: `f_06` after `f_05`, `margin10` after `margin9`, of the same type and with as many missing cells.
 */
function follows(a: Named, b: Named): boolean {
  const number = /^(.*?)(\d+)$/.exec(a.name);
  if (!number || a.type !== b.type || a.missing !== b.missing) return false;
  const [, prefix, digits] = number;
  return b.name === `${prefix}${String(Number(digits) + 1).padStart(digits!.length, "0")}`;
}
