/**
 * Makes files about the metrics for Grafana and people: `charts/longrun/dashboards/*.json` from the tables beside this file,
 * `charts/longrun/metrics.md` from the code of learner, actor and controller.
 *
 *   node charts/observability/generate.ts           writes the files
 *   node charts/observability/generate.ts --check   exits 1 if a file is outdated
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { FLEET } from "./fleet.ts";
import { type Dashboard, grafana } from "./grafana.ts";
import { OPERATOR } from "./operator.ts";
import { reference } from "./reference.ts";
import { TRAINING } from "./training.ts";

export const CHART = fileURLToPath(new URL("../longrun/", import.meta.url));

export const DASHBOARDS: Record<string, Dashboard> = { training: TRAINING, fleet: FLEET, operator: OPERATOR };

/** Returns the files by path. */
async function files(): Promise<[path: string, text: string][]> {
  const dashboards = Object.entries(DASHBOARDS).map(([name, dashboard]): [string, string] => [
    `${CHART}dashboards/${name}.json`,
    `${JSON.stringify(grafana(dashboard), null, 2)}\n`,
  ]);
  return [...dashboards, [`${CHART}metrics.md`, await reference()]];
}

if (import.meta.main) {
  const stale: string[] = [];
  for (const [path, text] of await files()) {
    if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
    stale.push(path);
    if (process.argv.includes("--check")) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  if (process.argv.includes("--check") && stale.length > 0) {
    process.stderr.write(`not up to date: ${stale.join(", ")}; run: npm run generate\n`);
    process.exitCode = 1;
  }
}
