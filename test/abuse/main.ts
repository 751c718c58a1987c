/**
 * `npm run test:abuse`: runs every hostile program at every level, then rewards and honest programs, and prints the matrix.
 *
 *     node test/abuse/main.ts [--columns "namespaces|landlock|…"] [--parts hostile,rewards,honest] [--only NAME,…]
 *         [--python ENVIRONMENT] [--markdown]
 *
 * --python: a Python environment with more packages than the pinned one (those of actors.packages: Paper; catboost, pyarrow, matplotlib),
 * for honest programs that need them. Exit status: 0 if every attack failed that is not listed as open, 1 if not, 2 bad arguments. One line
 * names each part that this machine cannot run.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { lookForTools } from "../lane-tools.ts";
import { EXPECTATIONS, expectationOf } from "./expectations.ts";
import { Honest } from "./honest.ts";
import { REWARD_CASES, Rewards } from "./rewards.ts";
import { Arena, COLUMNS, type Column, HOSTILE } from "./suite.ts";

/** Columns that also run honest programs and rewards. */
const WHOLE = COLUMNS.filter(({ landlockAbi }) => landlockAbi === undefined);

const { values } = parseArgs({
  options: {
    columns: { type: "string" },
    parts: { type: "string", default: "hostile,rewards,honest" },
    only: { type: "string" },
    python: { type: "string" },
    markdown: { type: "boolean", default: false },
  },
});
lookForTools("test:abuse");
const environment = values.python ? resolve(values.python) : (await ensurePythonEnvironment()).directory;
const columns = values.columns === undefined ? COLUMNS : values.columns.split("|").map(columnOf);
const asked = values.only?.split(",");
const parts = values.parts.split(",");
const wanted = (name: string) => asked === undefined || asked.includes(name);
const failures: string[] = [];
/** {row: {column: result}} */
const attacks = new Map<string, Map<string, string>>();
const rewardRows = new Map<string, Map<string, string>>();
const honestRows = new Map<string, Map<string, string>>();

const rewards = new Rewards();
const honest = new Honest(environment);
for (const [needed, names] of honest.missing)
  process.stdout.write(`${needed} is not installed: not run: ${names.join(", ")}\n`);
const began = process.cpuUsage();
const start = performance.now();
for (const column of columns) {
  const arena = await Arena.open(column, { environment, inputs: rewards.inputs }).catch((error: Error) => error);
  if (arena instanceof Error) {
    failures.push(`${column.name}: ${arena.message}`);
    continue;
  }
  if (typeof arena === "string") {
    process.stdout.write(`${column.name}: not run: ${arena}\n`);
    continue;
  }
  const since = performance.now();
  for (const name of parts.includes("hostile") ? HOSTILE.filter(wanted) : [])
    await note(attacks, name, column, () => arena.attack(name));
  if (parts.includes("rewards") && WHOLE.includes(column)) {
    for (const name of Object.keys(REWARD_CASES).filter(wanted))
      await note(rewardRows, name, column, async () => {
        const { verdict, reward, weight } = await rewards.tryCase(arena, name);
        return `${verdict}: ${reward.toFixed(2)}, x${weight.toFixed(2)}`;
      });
    if (wanted("finds_out_that_it_is_graded"))
      await note(rewardRows, "finds_out_that_it_is_graded", column, async () => {
        await rewards.samePlace(arena);
        return "no gain: cannot tell";
      });
  }
  if (parts.includes("honest") && WHOLE.includes(column))
    for (const name of honest.names.filter(wanted))
      await note(honestRows, name, column, async () => (await honest.tryProgram(arena, name)) ?? "cannot");
  await arena.close();
  process.stdout.write(`${column.name}: ${((performance.now() - since) / 1000).toFixed(0)} s\n`);
}
rewards.close();

show("Hostile programs", attacks);
show("Programs after the reward (what they earned, and their duration weight over that of `guess`)", rewardRows);
show("Honest programs", honestRows);
const open = HOSTILE.flatMap((name) =>
  columns.flatMap(({ name: column, level }) =>
    attacks.get(name)?.get(column) === "OPEN" ? [`${name} at ${column}: ${expectationOf(name, level)?.open}`] : [],
  ),
);
for (const [name, { open: consequence }] of Object.entries(REWARD_CASES))
  if (consequence && rewardRows.has(name)) open.push(`${name}: ${consequence}`);
if (open.length > 0) process.stdout.write(`\nOpen:\n${open.map((line) => `- ${line}\n`).join("")}`);
const cpu = process.cpuUsage(began);
process.stdout.write(
  `\n${attacks.size} of ${Object.keys(EXPECTATIONS).length} hostile, ${rewardRows.size} after the reward, ${honestRows.size} honest, ` +
    `${((performance.now() - start) / 1000).toFixed(0)} s (${((cpu.user + cpu.system) / 1e6).toFixed(0)} s of CPU of this process alone)\n`,
);
for (const failure of failures) process.stdout.write(`\nFAILED ${failure}\n`);
process.exit(failures.length > 0 ? 1 : 0);

function columnOf(name: string): Column {
  const found = COLUMNS.find((column) => column.name === name.trim());
  if (found) return found;
  process.stderr.write(
    `--columns: there is no ${name}; separate with | ${COLUMNS.map((column) => column.name).join(" | ")}\n`,
  );
  process.exit(2);
}

async function note(rows: typeof attacks, name: string, { name: column }: Column, work: () => Promise<string>) {
  const row = rows.get(name) ?? new Map<string, string>();
  rows.set(name, row);
  const since = performance.now();
  try {
    row.set(column, await work());
  } catch (error) {
    row.set(column, "FAILED");
    failures.push(`${name} at ${column}: ${(error as Error).message}`);
  }
  const seconds = ((performance.now() - since) / 1000).toFixed(1);
  const said = row.get(column) === "FAILED" ? failures.at(-1) : `${column}: ${name}: ${row.get(column)}`;
  process.stderr.write(`${said} (${seconds} s)\n`);
}

/** Prints a table. As Markdown, programs with the same result in all columns are listed before it. */
function show(title: string, rows: typeof attacks): void {
  if (rows.size === 0) return;
  process.stdout.write(`\n${title}\n`);
  const there = COLUMNS.filter(({ name }) => [...rows.values()].some((row) => row.has(name)));
  const alike = new Map<string, string[]>();
  const apart: string[][] = [];
  for (const [name, row] of rows) {
    const words = new Set(row.values());
    const [word = ""] = words;
    if (values.markdown && words.size === 1) alike.set(word, [...(alike.get(word) ?? []), name]);
    else apart.push([name, ...there.map((column) => row.get(column.name) ?? "")]);
  }
  for (const [word, names] of alike)
    process.stdout.write(`\n**${word}** everywhere (${names.length}): ${names.join(", ")}.\n`);
  if (apart.length === 0) return;
  const table = [["program", ...there.map(({ name }) => name)], ...apart];
  const widths = table[0]!.map((_, index) => Math.max(...table.map((row) => row[index]!.length)));
  const lines = table.map((row) => row.map((cell, index) => cell.padEnd(widths[index]!)));
  process.stdout.write("\n");
  for (const [index, line] of lines.entries()) {
    process.stdout.write(values.markdown ? `| ${line.join(" | ")} |\n` : `${line.join("  ").trimEnd()}\n`);
    if (values.markdown && index === 0)
      process.stdout.write(`|${widths.map((width) => "-".repeat(width + 2)).join("|")}|\n`);
  }
}
