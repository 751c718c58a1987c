/** The result of an experiment: raw results, a page in Markdown and plots, stored in `results/DATE/`. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import type { TopLevelSpec } from "vega-lite";
import { renderSvg } from "../../learner/report/svg.ts";

export interface Experiment {
  question: string;
  run(flags: string[]): Promise<Findings>;
}

export interface Findings {
  /** Markdown: the method, the table and the answer; results against the method come first. */
  page: string;
  /** A plot without a specification has no data yet. */
  plots: { name: string; description: string; spec: TopLevelSpec | undefined }[];
  /** All numbers behind the page. */
  raw: object;
}

/** Writes `results/DATE/NAME.json`, `NAME.md` and its plots. @returns the paths */
export async function keep(name: string, { page, plots, raw }: Findings, began: Date): Promise<string[]> {
  const directory = new URL(`./results/${began.toISOString().slice(0, 10)}/`, import.meta.url);
  await mkdir(directory, { recursive: true });
  const paths: string[] = [];
  const write = async (file: string, text: string) => {
    const url = new URL(file, directory);
    await writeFile(url, text);
    paths.push(url.pathname);
  };
  const machine = {
    processor: os.cpus()[0]?.model.trim() ?? "unknown",
    cores: os.availableParallelism(),
    node: process.version,
  };
  const seconds = Math.round((Date.now() - began.getTime()) / 1000);
  await write(
    `${name}.json`,
    `${JSON.stringify({ name, date: began.toISOString(), seconds, machine, ...raw }, sixDigits, 1)}\n`,
  );
  await write(`${name}.md`, page);
  for (const { name: file, spec, description } of plots)
    if (spec) await write(`${file}.svg`, await standaloneSvg(spec, description));
  return paths;
}

/** More digits of a measured number are noise. */
function sixDigits(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}

/** Returns a standalone SVG file: the report's colours are variables of a style sheet that such a file lacks. */
async function standaloneSvg(spec: TopLevelSpec, description: string): Promise<string> {
  const css = await readFile(new URL("../../learner/report/report.css", import.meta.url), "utf8");
  const light = css.slice(0, css.indexOf("}"));
  const colors = new Map([...light.matchAll(/--(\w+): (#\w+);/g)].map(([, name, value]) => [name!, value!]));
  const svg = await renderSvg({ ...spec, background: colors.get("paper")! }, description);
  return `${svg
    .replace(
      /^<svg viewBox="([\d.-]+) ([\d.-]+) ([\d.]+) ([\d.]+)"/,
      '<svg xmlns="http://www.w3.org/2000/svg" width="$3" height="$4" viewBox="$1 $2 $3 $4"',
    )
    .replace(/var\(--(\w+)\)/g, (whole, name) => colors.get(name) ?? whole)}\n`;
}
