/**
 * Makes learner/engine/plans.md: the output of `longrun model info --plan` for Qwen2.5.
 *
 *   node learner/commands/plan-page.ts           writes the page
 *   node learner/commands/plan-page.ts --check   exits 1 if the page differs from the command's output
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = join(ROOT, "learner/engine/plans.md");
export const SIZES = ["0.5B", "1.5B", "3B", "7B", "14B"];

/** The head is written by hand. */
const head = (): string => readFileSync(join(ROOT, "learner/engine/plans.head.md"), "utf8");

/** An entry that was rehearsed: test/rehearsal/plans.ts. */
type Rehearsed = { shape: string; trained: string; gigabytes: number; gpus: number; plan: number; ratio: number };

/** Returns the part of the page about one size. */
export function section(size: string): string {
  const command = join(import.meta.dirname, "model-command.ts");
  const folder = `test/fixtures/qwen2.5/${size}`;
  const printed = execFileSync(process.execPath, [command, "info", folder, "--plan"], { cwd: ROOT, encoding: "utf8" });
  return `\n## Qwen2.5-${size}\n\n\`\`\`\n${printed}\`\`\`\n\n${ratios(size, printed)}`;
}

/** Returns a table of plan / peak for the entries of a printed table that fit; `?`: not rehearsed with this plan. */
export function ratios(size: string, printed: string): string {
  const { entries } = JSON.parse(readFileSync(join(ROOT, "test/rehearsal/plans.json"), "utf8")) as {
    entries: Rehearsed[];
  };
  const rows = [...printed.matchAll(/^(LoRA|every weight), (\d+) GB each +(.*)$/gm)].map(
    ([, trained, gigabytes, rest]) => {
      const cells = rest!.split(/ {2,}/).slice(0, 4);
      const found = cells.map((cell, i) => {
        if (cell.startsWith("no")) return "-";
        const name = `${size}, ${trained}, ${2 ** i} x ${gigabytes} GB`;
        const entry = entries.find(
          (it) => `${it.shape.toUpperCase()}, ${it.trained}, ${it.gpus} x ${it.gigabytes} GB` === name,
        );
        if (!entry || (entry.plan / 1e9).toFixed(1) !== cell) return "?";
        return entry.ratio.toFixed(2);
      });
      return `| ${trained}, ${gigabytes} GB | ${found.join(" | ")} |\n`;
    },
  );
  return `| plan / rehearsed peak | 1 GPU | 2 GPUs | 4 GPUs | 8 GPUs |\n| --- | --- | --- | --- | --- |\n${rows.join("")}`;
}

if (import.meta.main) {
  const page = head() + SIZES.map(section).join("");
  if (!process.argv.includes("--check")) writeFileSync(PAGE, page);
  else if (readFileSync(PAGE, "utf8") !== page) {
    process.stderr.write(`${PAGE} is not what the command prints; make it anew: node learner/commands/plan-page.ts\n`);
    process.exitCode = 1;
  }
}
