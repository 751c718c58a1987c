/**
 * The figures that must not become worse: operations of each phase, nodes on the CPU and copies that ONNX Runtime inserted, for a slice of
 * Qwen2.5-0.5B (its sizes and vocabulary, two layers). `figures.json` has the present figures; a test compares.
 *
 *     node test/rehearsal/figures.ts     # writes figures.json, after a change that makes one better
 *
 * The goals and the figures of all 24 layers (23 November 2026, `npm run bench rehearsal`):
 *
 * | | goal | before | now |
 * | --- | --- | --- | --- |
 * | nodes on the CPU other than size arithmetic | 0 | 116 | 0 |
 * | copies that ONNX Runtime inserted (Memcpy nodes) | 0 | 233 | 0 |
 * | copies to the host of log-probs, a critic step, a policy step: losses and norms | 3 each | 40, 120, 196 | 2, 3, 3 |
 * | copies to the device of a step with LoRA, with every weight: inputs | 12 | 129, 1061 | 7, 11 |
 * | launches of a LoRA policy step in bfloat16 and in float32 | bfloat16 below float32 | 5895, 3250 | 2955, 3329 |
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { SHAPES } from "../../learner/engine/model/hollow.fixture.ts";
import { ensureRehearsal, rehearsalEnvironment } from "./build.ts";
import type { Counts } from "./counts.ts";
import { CONFIGURATIONS, runPhases, type Shape } from "./phases.ts";

export const SLICE: Shape = { config: { ...SHAPES["0.5b"], layers: 2 }, batch: 4, prompt: 64, response: 64 };

/** The compared counts. The peak of memory is not among them: it is compared with the plan. */
const COMPARED = [
  ...(["launches", "products", "toDevice", "toHost", "toHostBytes", "onDevice", "onDeviceBytes"] as const),
  ...(["synchronisations"] as const),
] as const satisfies (keyof Counts)[];

export interface Figures {
  /** Counts by phase. */
  counts: Record<string, Record<(typeof COMPARED)[number], number>>;
  /** Nodes on the CPU by graph, operator and type. */
  onCpu: Record<string, Record<string, number>>;
  /** Number of memcpy nodes by graph. */
  memcpyNodes: Record<string, number>;
}

export const FIGURES = path.join(import.meta.dirname, "figures.json");

/** Measures one of CONFIGURATIONS. */
export async function measure(configuration: string): Promise<Figures> {
  const { phases, placements } = await runPhases(SLICE, CONFIGURATIONS[configuration]!);
  const graphs = Object.entries(placements);
  return {
    counts: Object.fromEntries(
      phases.map(({ phase, counts }) => [
        phase,
        Object.fromEntries(COMPARED.map((name) => [name, counts[name]])) as Figures["counts"][string],
      ]),
    ),
    onCpu: Object.fromEntries(graphs.map(([graph, { onCpu }]) => [graph, onCpu])),
    memcpyNodes: Object.fromEntries(graphs.map(([graph, { copies }]) => [graph, copies])),
  };
}

/** Returns a line for each number of `found` that is larger than in `known`, or missing there. */
export function worse(found: object, known: object | undefined, where: string[] = []): string[] {
  return Object.entries(found).flatMap(([name, value]) => {
    const bound = (known as Record<string, unknown> | undefined)?.[name];
    const place = [...where, name];
    if (typeof value === "object") return worse(value as object, bound as object | undefined, place);
    return value > Number(bound ?? 0) ? [`${place.join(" / ")}: ${value}, was ${bound ?? 0}`] : [];
  });
}

if (import.meta.main) {
  if (process.env.REHEARSAL_FOLDER === undefined) {
    await ensureRehearsal((line) => process.stderr.write(`${line}\n`));
    const env = { ...process.env, ...rehearsalEnvironment() };
    process.exit(spawnSync(process.execPath, process.argv.slice(1), { stdio: "inherit", env }).status ?? 1);
  }
  const figures: Record<string, Figures> = {};
  for (const name of Object.keys(CONFIGURATIONS)) figures[name] = await measure(name);
  writeFileSync(FIGURES, `${JSON.stringify(figures, null, 2)}\n`);
}
