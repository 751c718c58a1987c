/**
 * Counts the nodes that ran, by graph, operator and provider, from ONNX Runtime's profile. `nodes.json` has a rehearsal's; `npm run bench
 * gpu` compares a GPU's with them (../bench/gpu/counts.ts).
 *
 *     node test/rehearsal/nodes.ts     # writes nodes.json, after a change of graphs or of ONNX Runtime
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { Device } from "../../learner/engine/runtime/device.ts";
import { ensureRehearsal, rehearsalEnvironment } from "./build.ts";
import { SLICE } from "./figures.ts";
import { CONFIGURATIONS, onDevice, PHASES } from "./phases.ts";
import { type Events, profiledEvents } from "./placement.ts";

/** Some of CONFIGURATIONS: recomputed layers have no operators of their own. */
export const COMPARED = ["LoRA, float32", "LoRA, bfloat16", "every weight, float32", "every weight, bfloat16"];

export const NODES = path.join(import.meta.dirname, "nodes.json");

/** Number of nodes by graph, then by operator and provider, e.g. `MatMul on CUDA`. */
export type Nodes = Record<string, Record<string, number>>;

/** Runs every phase of figures.ts' shape once, under ONNX Runtime's profile. */
export async function nodesOf(configuration: string, device: Device): Promise<Nodes> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-nodes-"));
  try {
    process.env.LONGRUN_PROFILE = path.join(folder, "run"); // the engine's worker reads it when it starts
    const options = { ...CONFIGURATIONS[configuration]!, device, resident: true };
    await onDevice(SLICE, options, async (engine, batch) => {
      await engine.initializeCritic(0);
      for (const act of Object.values(PHASES)) await act(engine, batch);
    });
    return Object.fromEntries(
      Object.entries(profiledEvents(path.join(folder, "run"))).map(([graph, events]) => [graph, byProvider(events)]),
    );
  } finally {
    delete process.env.LONGRUN_PROFILE;
    await rm(folder, { recursive: true });
  }
}

function byProvider(events: Events): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { args } of events) {
    const { op_name: operator = "?", provider = "?" } = args ?? {};
    const kind = `${operator} on ${provider.replace("ExecutionProvider", "")}`;
    found[kind] = (found[kind] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}

if (import.meta.main) {
  if (process.env.REHEARSAL_FOLDER === undefined) {
    await ensureRehearsal((line) => process.stderr.write(`${line}\n`));
    const env = { ...process.env, ...rehearsalEnvironment() };
    process.exit(spawnSync(process.execPath, process.argv.slice(1), { stdio: "inherit", env }).status ?? 1);
  }
  const nodes: Record<string, Nodes> = {};
  for (const name of COMPARED) nodes[name] = await nodesOf(name, { kind: "cuda", id: 0 });
  writeFileSync(NODES, `${JSON.stringify(nodes, null, 2)}\n`);
  process.exit(0);
}
