/** Everything that the READMEs name must exist: commands of `longrun` with their options, npm scripts, files of the project. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { commandsOf } from "../../controller/cli/commands.ts";
import { wordOf } from "../../controller/dispatch.ts";
import { PARTS } from "../../controller/parts.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Folders that do not belong to the project. A head is the beginning of a generated page. */
const FOREIGN = ["node_modules", "runs", ".git", ".cache", ".venv"];
const isForeign = (path: string) => FOREIGN.includes(path.split("/").at(-1)!) || path.endsWith(".head.md");
const FILES = globSync("**/*.md", { cwd: ROOT, exclude: isForeign }).sort();
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
const commands = commandsOf(PARTS).map(({ command }) => command);

const withoutBlocks = (markdown: string) => markdown.replace(/^```[\s\S]*?^```$/gm, "");

/** Returns the code: lines of `sh` blocks, and text between backticks. */
function codeOf(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  const lines = blocks.filter(([, language]) => language === "sh").flatMap(([, , block]) => block!.split("\n"));
  const spans = withoutBlocks(markdown).matchAll(/`([^`\n]+)`/g);
  return [...lines, ...[...spans].map(([, span]) => span!)].map((line) => line.replace(/\s#.*$/, "").trim());
}

/** @param to `FILE`, `FILE#HEADING` or `#HEADING`, as GitHub names headings */
function leadsSomewhere(from: string, to: string): boolean {
  const [path, heading] = to.split("#") as [string, string?];
  const file = path === "" ? join(ROOT, from) : join(ROOT, dirname(from), path);
  if (!existsSync(file) || heading === undefined || !file.endsWith(".md")) return existsSync(file);
  const headings = [...withoutBlocks(readFileSync(file, "utf8")).matchAll(/^#+ (.*)$/gm)].map(([, text]) => text!);
  const slug = (text: string) =>
    text
      .toLowerCase()
      .replace(/[^\p{Letter}\p{Number}\s_-]/gu, "")
      .replace(/\s/g, "-");
  return headings.some((text) => slug(text) === heading);
}

/** Returns the fault of a line of code; undefined if it has none, or is no command of the project. */
function problemOf(line: string): string | undefined {
  const script = /\bnpm (?:run ([\w:]+)|(test)\b)/.exec(line);
  const name = script?.[1] ?? script?.[2];
  if (name !== undefined && !(name in scripts)) return `package.json has no script ${name}`;
  const program = /(?:^|\s|\/)node (?:--[\w-]+ )*([\w/.-]+\.ts)/.exec(line)?.[1];
  if (program && !existsSync(join(ROOT, program))) return `there is no ${program}`;
  const path = /(?:^|\s)((?:charts|manifests|test|crds)\/[\w./-]*[\w/-])/.exec(line)?.[1];
  if (path && /^(helm|kubectl|docker|node|npm)\b/.test(line) && !existsSync(join(ROOT, path)))
    return `there is no ${path}`;
  const ours = /^(?:npm run longrun --|longrun) ([a-z-]+)(.*)$/.exec(line);
  if (!ours) return undefined;
  const command = commands.find((it) => wordOf(it) === ours[1]);
  if (!command) return ours[1] === "help" ? undefined : `longrun has no command ${ours[1]}`;
  const [, , rest] = ours;
  const nested = command.commands?.filter((it) => rest!.includes(` ${wordOf(it)}`));
  const known = [command, ...(nested ?? [])].flatMap((it) => Object.keys(it.options).map((name) => `--${name}`));
  const unknown = [...rest!.matchAll(/(?<=[\s[])(--[a-z-]+)/g)].find(([, option]) => !known.includes(option));
  return unknown && known.length > 0 ? `longrun ${ours[1]} has no option ${unknown[1]}` : undefined;
}

describe("READMEs", () => {
  for (const file of FILES) {
    const markdown = readFileSync(join(ROOT, file), "utf8");
    test(`${file} names commands that exist`, () => {
      const problems = codeOf(markdown).flatMap((line) => problemOf(line) ?? []);
      assert.deepEqual(problems, []);
    });

    test(`${file} links to files and headings that exist`, () => {
      const links = [...withoutBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to!);
      const local = links.filter((to) => !/^[a-z]+:/.test(to));
      assert.deepEqual(
        local.filter((to) => !leadsSomewhere(file, to)),
        [],
      );
    });
  }

  const WRONG: [line: string, problem: string][] = [
    ["npm run nothing", "package.json has no script nothing"],
    ["longrun fly", "longrun has no command fly"],
    ["longrun run FILE --out DIR --up 3", "longrun run has no option --up"],
    ["npm run longrun -- validate FILE --clusters", "longrun validate has no option --clusters"],
    ["node test/none.ts", "there is no test/none.ts"],
    ["kubectl apply -k manifests/none", "there is no manifests/none"],
  ];
  for (const [line, problem] of WRONG) test(`found: ${line}`, () => assert.equal(problemOf(line), problem));
});
